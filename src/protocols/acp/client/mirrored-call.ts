// A call of a foreign agent as a call of Belay: recorded, shown, approved and ended like any other.
//
// Invariants
// 1. It is recorded when the agent announces it, whatever status the agent gives it: an agent that never moves a call
//    on from `pending` carries it out all the same. One that is announced without an input waits HOLD_MS for it.
// 2. It ends when the agent says so, when its prompt has ended, or when the agent is gone; and then once.
// 3. What the agent says of it after it was recorded is sent on as progress.
import type { Json } from "../../../core/model/prompt.ts";
import type { CallResult, LiveCall, Turn } from "../../../ports/agent.ts";
import { brief, keptJson } from "./kept-json.ts";
import { CALL_CHARS_MAX, HOLD_MS, NAME_CHARS_MAX, PROGRESS_CHARS_MAX } from "./limits.ts";
import { type CallChange, type CallContent, withNews } from "./update.ts";

/** How the foreign call ended. `unknown`: the agent did not say. */
type End =
  | { readonly kind: "completed" }
  | { readonly kind: "failed" }
  | { readonly kind: "denied"; readonly why: string }
  | { readonly kind: "unknown"; readonly why: string };

export interface MirroredCallParts {
  readonly turn: Turn;
  /** How this one call can be ended. Undefined: it cannot. */
  readonly stopper: (news: CallChange) => (() => Promise<unknown>) | undefined;
  /** Called for a call that the host forbids, and that the agent has begun without having asked. */
  readonly forbidden: (title: string) => void;
  /** Called when the call is over here. */
  readonly ended?: () => void;
}

export class MirroredCall {
  /** The call is recorded and runs. */
  readonly begun: Promise<LiveCall>;
  /** How it ended here. Undefined while it is not recorded; resolves with undefined if it never was. */
  result: Promise<CallResult | undefined> | undefined = undefined;
  live: LiveCall | undefined = undefined;
  /** An approval of it was requested. */
  wasAsked = false;
  readonly #parts: MirroredCallParts;
  readonly #begun = Promise.withResolvers<LiveCall>();
  readonly #ended = Promise.withResolvers<End>();
  #news: CallChange;
  #over = false;
  #cancelHold: (() => void) | undefined = undefined;

  constructor(id: string, parts: MirroredCallParts) {
    this.#news = { id, ...NOTHING_KNOWN };
    this.#parts = parts;
    this.begun = this.#begun.promise;
  }

  /** `held`: it is not recorded, because its input may still come. */
  get phase(): "held" | "called" | "over" {
    if (this.#over) return "over";
    return this.result === undefined ? "held" : "called";
  }

  get title(): string {
    const { title, tool, sort } = this.#news;
    return brief((title ?? tool ?? sort ?? "tool").replaceAll(/\s+/g, " ").trim() || "tool", NAME_CHARS_MAX);
  }

  /** What an approval for the whole session would cover: the tool where it has a name, else exactly this. */
  get scope(): string {
    return brief(this.#news.tool ?? this.title, NAME_CHARS_MAX);
  }

  /** What people approve. `content` where the agent has given no input. */
  get shown(): Json {
    return this.#input(this.#news.content ?? []);
  }

  /** Resolves once what was recorded of it so far is durable: what comes after it must be sent after it. */
  get recorded(): Promise<unknown> {
    const { result } = this;
    if (result === undefined) return Promise.resolve();
    return this.#over ? result : Promise.race([this.begun, result]);
  }

  told(news: CallChange): void {
    if (this.#over) return;
    this.#news = withNews(this.#news, news);
    const { status } = this.#news;
    if (status === "completed" || status === "failed") {
      this.begin();
      this.end({ kind: status });
    } else if (this.live !== undefined) {
      this.#sendProgress(this.live, news);
    } else if (status === "in_progress" || hasInput(this.#news)) {
      this.begin();
    } else {
      this.#cancelHold ??= this.#parts.turn.clock.after(HOLD_MS, () => this.begin());
    }
  }

  /** Makes a call of it, once. */
  begin(): void {
    this.#cancelHold?.();
    if (this.result !== undefined) return;
    const { turn, stopper } = this.#parts;
    const stop = stopper(this.#news);
    const options = { again: "begin", interruptible: stop !== undefined, provider: this.#provider() } as const;
    const input = this.#input([]);
    this.result = turn.call(this.title, input, (call) => this.#execute(call, stop), options).catch(() => undefined);
    void this.result.then((result) => {
      this.#checkRefusal(result);
      this.#over = true;
      this.#parts.ended?.();
    });
  }

  /** A call that failed and was never carried out here was forbidden by the host. */
  #checkRefusal(result: CallResult | undefined): void {
    if (result?.kind === "failed" && this.live === undefined) this.#parts.forbidden(this.title);
  }

  end(end: End): void {
    // One that was announced is recorded, even if it ends before it was.
    if (this.#cancelHold !== undefined) this.begin();
    this.#over = true;
    this.#ended.resolve(end);
  }

  async #execute(call: LiveCall, stopThis: (() => Promise<unknown>) | undefined): Promise<Json | undefined> {
    this.live = call;
    this.#begun.resolve(call);
    const { turn } = this.#parts;
    let stopped: Promise<void> | undefined;
    const stop = (): void => {
      // With its run it is stopped by the stop of the whole prompt, whose signal may be the later one of the same tick.
      stopped = Promise.resolve().then(async () => {
        if (!turn.signal.aborted) await stopThis?.();
      });
    };
    if (call.signal.aborted) stop();
    call.signal.addEventListener("abort", stop, { once: true });
    const end = await this.#ended.promise;
    call.signal.removeEventListener("abort", stop);
    // The agent reports the end of a command when its first process is gone.
    await stopped;
    const result = resultOf(this.#news);
    for (const path of end.kind === "completed" || end.kind === "unknown" ? changedBy(this.#news) : []) {
      call.changed(path);
    }
    if (end.kind === "completed") return result;
    if (result !== undefined) call.partial(result);
    // Agents report a call that they have stopped as failed. What it said about that is in its partial result.
    if (call.stopping) throw new DOMException("The agent has stopped it.", "AbortError");
    if (end.kind === "denied") throw Object.assign(new Error(end.why), { name: "Denied", code: "denied" });
    throw new Error(end.kind === "failed" ? failureOf(result) : end.why);
  }

  /** `shown`: what people should see before they approve it, where the agent has given no input. */
  #input(shown: readonly CallContent[]): Json {
    const { input, sort, paths = [] } = this.#news;
    if (input !== undefined) return input;
    return keptJson({
      ...(sort === undefined ? {} : { kind: sort }),
      ...(paths.length === 0 ? {} : { paths }),
      ...(shown.length === 0 ? {} : { content: shown.map(contentJson) }),
    });
  }

  /** The agent's own id of the call, and the details for which Belay's own record has no place. */
  #provider(): { readonly id: string; readonly data: Json } {
    const { id, sort, status, locations } = this.#news;
    const data = {
      ...(sort === undefined ? {} : { kind: sort }),
      ...(locations === undefined ? {} : { locations }),
      ...(status === "pending" || status === undefined ? { status: "pending" } : {}),
    };
    return { id: brief(id, NAME_CHARS_MAX), data: { acp: data } };
  }

  #sendProgress(call: LiveCall, { title, status, sort, locations, content, input }: CallChange): void {
    const update = {
      ...(title === undefined ? {} : { title }),
      ...(status === undefined ? {} : { status }),
      ...(sort === undefined ? {} : { kind: sort }),
      ...(locations === undefined ? {} : { locations }),
      ...(input === undefined ? {} : { rawInput: input }),
      ...(content === undefined ? {} : { content: content.map(({ raw }) => raw) }),
    };
    if (Object.keys(update).length === 0) return;
    const text = textOf(content ?? []);
    const shown = text === "" ? {} : { text: text.slice(-PROGRESS_CHARS_MAX).toWellFormed() };
    call.progress({ ...shown, acp: keptJson(update, CALL_CHARS_MAX / 2) });
  }
}

const NOTHING_KNOWN = {
  ...{ title: undefined, tool: undefined, sort: undefined, status: undefined, content: undefined },
  ...{ paths: undefined, locations: undefined, input: undefined, output: undefined },
};

const hasInput = ({ input }: CallChange): boolean =>
  input !== undefined && input !== null && !(typeof input === "object" && Object.keys(input).length === 0);

/** The text alone if there is nothing else: that is what most tools say. */
function resultOf({ content = [], output }: CallChange): Json | undefined {
  const text = brief(textOf(content), CALL_CHARS_MAX);
  const diffs = content.filter((one) => one.kind === "diff");
  const images = content.filter((one) => one.kind === "image");
  if (diffs.length === 0 && images.length === 0) return text === "" ? output : text;
  return keptJson({
    ...(text === "" ? {} : { text }),
    ...(diffs.length === 0 ? {} : { diffs: diffs.map(contentJson) }),
    ...(images.length === 0 ? {} : { content: images.map(({ raw }) => raw) }),
  });
}

const changedBy = ({ content = [] }: CallChange): readonly string[] =>
  content.flatMap((one) => (one.kind === "diff" ? [one.path] : []));

const textOf = (content: readonly CallContent[]): string =>
  content.flatMap((one) => (one.kind === "text" && one.text !== "" ? [one.text] : [])).join("\n");

function contentJson(one: CallContent): Json {
  if (one.kind !== "diff") return { text: one.text };
  return { path: one.path, ...(one.before === undefined ? {} : { before: one.before }), after: one.after };
}

const failureOf = (result: Json | undefined): string =>
  typeof result === "string" && result !== "" ? brief(result, PROGRESS_CHARS_MAX) : "The agent says that it failed.";
