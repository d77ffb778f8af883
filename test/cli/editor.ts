// An editor that has started `belay acp`: sends and records lines of JSON-RPC.
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
  #requests = 0;
  #read = 0;
  #waiting: { readonly look: (lines: readonly Line[]) => Line | undefined; readonly give: (line: Line) => void }[] = [];
  readonly #lines: Line[] = [];

  constructor(program: Program) {
    this.program = program;
    this.#child = program.child;
    this.#child.stdout?.on("data", () => this.#check());
    // A program that has exited does not read its stdin.
    this.#child.stdin?.on("error", () => {});
  }

  /** Starts a program and initializes the connection. */
  static async open(shell: Shell, ...args: readonly string[]): Promise<Editor> {
    const editor = new Editor(shell.start(...args));
    const { result } = await editor.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    expect(result).toMatchObject({ protocolVersion: 1 });
    return editor;
  }

  /** All lines on stdout so far. Throws if a line is not JSON-RPC. */
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

  /** The responses to a request. */
  answersTo(id: number): readonly Line[] {
    return this.lines.filter((line) => line.id === id && line.method === undefined);
  }

  /** Sends a request and returns its id at once. */
  send(method: string, params: Fields): number {
    this.#requests += 1;
    this.program.type(`${JSON.stringify({ jsonrpc: "2.0", id: this.#requests, method, params })}\n`);
    return this.#requests;
  }

  notify(method: string, params: Fields): void {
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

  /** Waits until the agent has sent this text. */
  async sees(text: string): Promise<void> {
    await this.#when((lines) => (said(lines).includes(text) ? lines[0] : undefined));
  }

  /** The text that the agent has sent. */
  get said(): string {
    return said(this.lines);
  }

  /** Disconnects gracefully: closes its end of the pipe, and continues to read. */
  hangUp(): Promise<number | NodeJS.Signals | null> {
    this.#child.stdin?.end();
    return this.program.ended;
  }

  #when(look: (lines: readonly Line[]) => Line | undefined): Promise<Line> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ look, give: resolve });
      void this.program.ended.then(() => {
        this.#check();
        reject(new Error(`It ended before.\nout: ${this.program.out}\nerr: ${this.program.err}`));
      });
      this.#check();
    });
  }

  #check(): void {
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
