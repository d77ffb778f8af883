// A host that speaks to a bridge over streams in memory: it sends lines, and waits for answers by their ids.
import { PassThrough, Writable } from "node:stream";
import type { AuditRecord } from "../../src/bridge/audit.ts";
import { type BridgeOptions, runBridge } from "../../src/bridge/bridge.ts";
import { systemClock } from "../../src/engine/system-clock.ts";
import { type Belay, type BelayOptions, openBelay } from "../../src/library/belay.ts";
import { type ScriptedAgent, scriptedAgent } from "../../src/testing/scripted-agent.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Whatever a line says. Tests look at what they expect, and fail where it is not there. */
export interface Line {
  readonly jsonrpc: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Fields;
  };
}

export class InMemoryHost {
  readonly input = new PassThrough();
  readonly lines: Line[] = [];
  readonly records: AuditRecord[] = [];
  readonly notices: string[] = [];
  /** Resolves when the bridge has come to its end. */
  readonly over: Promise<void>;
  readonly output: Writable;
  #rest = "";
  #waiting: { readonly wanted: (line: Line) => boolean; readonly found: (line: Line) => void }[] = [];

  constructor(options: Omit<BridgeOptions, "input" | "output" | "clock"> & Partial<BridgeOptions>) {
    this.output =
      options.output ??
      new Writable({
        write: (piece: Buffer, _, done) => {
          this.hear(piece.toString());
          done();
        },
      });
    this.over = runBridge({
      clock: systemClock,
      audit: { note: async (record) => void this.records.push(record) },
      notice: (text) => this.notices.push(text),
      ...options,
      input: this.input,
      output: this.output,
    });
  }

  hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(JSON.parse(line) as Line);
  }

  /** All in one piece, as a pipe hands it over. */
  send(...messages: readonly object[]): void {
    this.input.write(messages.map((one) => `${JSON.stringify({ jsonrpc: "2.0", ...one })}\n`).join(""));
  }

  /** Sends a request and waits for its answer. */
  async ask(method: string, params: object = {}): Promise<Line> {
    this.#ids += 1;
    const id = `ask-${this.#ids}`;
    this.send({ id, method, params });
    return this.answer(id);
  }
  #ids = 0;

  answer(id: string | number | null): Promise<Line> {
    return this.line((line) => line.id === id && line.method === undefined);
  }

  told(method: string, wanted: (params: Fields) => boolean = () => true): Promise<Line> {
    return this.line((line) => line.method === method && wanted(line.params ?? {}));
  }

  /** What the host was told by a subscription. */
  async event(type: string, wanted: (event: Fields) => boolean = () => true): Promise<Fields> {
    const { params } = await this.told(
      "event",
      ({ event }) => (event as Fields).type === type && wanted(event as Fields),
    );
    return params?.event as Fields;
  }

  line(wanted: (line: Line) => boolean): Promise<Line> {
    const known = this.lines.find(wanted);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((found) => this.#waiting.push({ wanted, found }));
  }

  async newSession(): Promise<string> {
    return String((await this.ask("session/new")).result?.sessionId);
  }

  #take(line: Line): void {
    this.lines.push(line);
    for (const one of this.#waiting.filter(({ wanted }) => wanted(line))) one.found(line);
    this.#waiting = this.#waiting.filter(({ wanted }) => !wanted(line));
  }
}

export interface BridgedHouse {
  readonly belay: Belay;
  readonly agent: ScriptedAgent;
  readonly host: InMemoryHost;
}

/** Belay in this process with an agent in the hands of the test, and a host before it. */
export async function openBridge(
  options: Partial<BelayOptions> = {},
  bridge: Partial<BridgeOptions> = {},
): Promise<BridgedHouse> {
  const agent = Object.assign(scriptedAgent(), { modes: [{ id: "auto", name: "Auto" }] });
  const belay = await openBelay({ store: ":memory:", graceMs: 50, agent, ...options });
  const clock = options.clock === undefined ? {} : { clock: options.clock };
  const host = new InMemoryHost({ control: belay, close: (mode) => belay.close({ mode }), ...clock, ...bridge });
  return { belay, agent, host };
}
