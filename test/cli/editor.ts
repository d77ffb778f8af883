// An editor that has started `belay acp`: speaks lines of JSON-RPC with it, and keeps everything it was told.
import type { ChildProcess } from "node:child_process";
import { expect } from "vitest";
import type { Program, Shell } from "../fixtures/shell.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface Line {
  readonly jsonrpc: "2.0";
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
  readonly error?: { readonly code: number; readonly message: string };
}

export class Editor {
  readonly program: Program;
  readonly #child: ChildProcess;
  #asked = 0;
  #read = 0;
  #waiting: { readonly look: (lines: readonly Line[]) => Line | undefined; readonly give: (line: Line) => void }[] = [];
  readonly #lines: Line[] = [];

  constructor(program: Program) {
    this.program = program;
    this.#child = program.child;
    this.#child.stdout?.on("data", () => this.#look());
    // Whoever is gone does not read what is written to them.
    this.#child.stdin?.on("error", () => {});
  }

  /** Started, and spoken with. */
  static async open(shell: Shell, ...words: readonly string[]): Promise<Editor> {
    const editor = new Editor(shell.start(...words));
    const { result } = await editor.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    expect(result).toMatchObject({ protocolVersion: 1 });
    return editor;
  }

  /** Everything that was said on stdout so far. Throws if anything of it is no JSON-RPC. */
  get lines(): readonly Line[] {
    const whole = this.program.out.slice(0, this.program.out.lastIndexOf("\n") + 1);
    const texts = whole.slice(this.#read).split("\n").slice(0, -1);
    this.#read = whole.length;
    for (const text of texts) {
      const line: Line = JSON.parse(text);
      expect(line.jsonrpc, text).toBe("2.0");
      this.#lines.push(line);
    }
    return this.#lines;
  }

  /** What has been said to one request: once, or the test is over. */
  answersTo(id: number): readonly Line[] {
    return this.lines.filter((line) => line.id === id && line.method === undefined);
  }

  /** Sends a request and does not wait. Answers its id. */
  send(method: string, params: Fields): number {
    this.#asked += 1;
    this.program.type(`${JSON.stringify({ jsonrpc: "2.0", id: this.#asked, method, params })}\n`);
    return this.#asked;
  }

  tell(method: string, params: Fields): void {
    this.program.type(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`);
  }

  answer(id: number): Promise<Line> {
    return this.#when(() => this.answersTo(id)[0]);
  }

  ask(method: string, params: Fields): Promise<Line> {
    return this.answer(this.send(method, params));
  }

  async newSession(cwd: string): Promise<string> {
    const { result, error } = await this.ask("session/new", { cwd, mcpServers: [] });
    expect(error).toBeUndefined();
    return String(result?.sessionId);
  }

  /** Sends a prompt and does not wait for its end. */
  prompt(sessionId: string, text: string): number {
    return this.send("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  /** Until the agent has said this. */
  async sees(text: string): Promise<void> {
    await this.#when((lines) => (said(lines).includes(text) ? lines[0] : undefined));
  }

  /** What the agent has said. */
  get said(): string {
    return said(this.lines);
  }

  /** Goes, in order: its end of the pipe is closed, and it reads on. */
  hangUp(): Promise<number | NodeJS.Signals | null> {
    this.#child.stdin?.end();
    return this.program.ended;
  }

  #when(look: (lines: readonly Line[]) => Line | undefined): Promise<Line> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ look, give: resolve });
      void this.program.ended.then(() => {
        this.#look();
        reject(new Error(`It ended before.\nout: ${this.program.out}\nerr: ${this.program.err}`));
      });
      this.#look();
    });
  }

  #look(): void {
    const { lines } = this;
    this.#waiting = this.#waiting.filter(({ look, give }) => {
      const found = look(lines);
      if (found !== undefined) give(found);
      return found === undefined;
    });
  }
}

function said(lines: readonly Line[]): string {
  return lines
    .filter(({ method }) => method === "session/update")
    .map(({ params }) => {
      const update = params?.update as {
        readonly sessionUpdate?: string;
        readonly content?: { readonly text?: string };
      };
      return update.sessionUpdate === "agent_message_chunk" ? (update.content?.text ?? "") : "";
    })
    .join("");
}
