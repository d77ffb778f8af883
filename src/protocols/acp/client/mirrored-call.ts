// A call of an external agent as a call of Belay: recorded, shown, approved and ended like any other.
//
// Invariants
// 1. It is recorded when the agent announces it, whatever its status: some agents execute calls that stay `pending`. A
//    call that is announced without input waits HOLD_MS for it.
// 2. It ends once: when the agent reports its end, when its prompt has ended, or when the agent is gone.
// 3. Updates after it was recorded are reported as progress.
import type { Json } from "../../../core/model/prompt.ts";
import type { CallResult, LiveCall, Turn } from "../../../ports/agent.ts";
import { brief, keptJson } from "./kept-json.ts";
import { CALL_CHARS_MAX, HOLD_MS, NAME_CHARS_MAX, PROGRESS_CHARS_MAX } from "./limits.ts";
import { type CallChange, type CallContent, mergeCallChange } from "./update.ts";

/** How the agent's call ended. `unknown`: the agent did not report it. */
type End =
  | { readonly kind: "completed" }
  | { readonly kind: "failed" }
  | { readonly kind: "denied"; readonly why: string }
  | { readonly kind: "unknown"; readonly why: string };

export interface MirroredCallParts {
  readonly turn: Turn;
  /** Returns a function that stops this one call; undefined if it cannot be stopped alone. */
  readonly stopper: (change: CallChange) => (() => Promise<unknown>) | undefined;
  /** Called for a call that the host forbids and that the agent began without a request. */
  readonly forbidden: (title: string) => void;
  /** Called when the call has ended in Belay. */
  readonly ended?: () => void;
}

export class MirroredCall {
  /** Resolves when the call is recorded and runs. */
  readonly begun: Promise<LiveCall>;
  /** Its result in Belay. Undefined until it is requested; resolves with undefined if it was never recorded. */
  result: Promise<CallResult | undefined> | undefined = undefined;
  live: LiveCall | undefined = undefined;
  /** Whether an approval was requested. */
  wasAsked = false;
  readonly #parts: MirroredCallParts;
  readonly #begun = Promise.withResolvers<LiveCall>();
  readonly #ended = Promise.withResolvers<End>();
  #state: CallChange;
  #over = false;
  #cancelHold: (() => void) | undefined = undefined;

  constructor(id: string, parts: MirroredCallParts) {
    this.#state = { id, ...NOTHING_KNOWN };
    this.#parts = parts;
    this.begun = this.#begun.promise;
  }

  /** `held`: not recorded yet, because its input may still arrive. */
  get phase(): "held" | "called" | "over" {
    if (this.#over) return "over";
    return this.result === undefined ? "held" : "called";
  }

  get title(): string {
    const { title, tool, sort } = this.#state;
    return brief((title ?? tool ?? sort ?? "tool").replaceAll(/\s+/g, " ").trim() || "tool", NAME_CHARS_MAX);
  }

  /** The scope of an approval for the session: the tool if it has a name, otherwise exactly this call. */
  get scope(): string {
    return brief(this.#state.tool ?? this.title, NAME_CHARS_MAX);
  }

  /** What is displayed for approval: the content where the agent gave no input. */
  get shown(): Json {
    return this.#input(this.#state.content ?? []);
  }

  /** Resolves once its record so far is durable; later updates must be sent after it. */
  get recorded(): Promise<unknown> {
    const { result } = this;
    if (result === undefined) return Promise.resolve();
    return this.#over ? result : Promise.race([this.begun, result]);
  }

  update(change: CallChange): void {
    if (this.#over) return;
    this.#state = mergeCallChange(this.#state, change);
    const { status } = this.#state;
    if (status === "completed" || status === "failed") {
      this.begin();
      this.end({ kind: status });
    } else if (this.live !== undefined) {
      this.#sendProgress(this.live, change);
    } else if (status === "in_progress" || hasInput(this.#state)) {
      this.begin();
    } else {
      this.#cancelHold ??= this.#parts.turn.clock.after(HOLD_MS, () => this.begin());
    }
  }

  /** Requests the call in Belay, once. */
  begin(): void {
    this.#cancelHold?.();
    if (this.result !== undefined) return;
    const { turn, stopper } = this.#parts;
    const stop = stopper(this.#state);
    const options = { again: "begin", interruptible: stop !== undefined, provider: this.#provider() } as const;
    const input = this.#input([]);
    this.result = turn.call(this.title, input, (call) => this.#execute(call, stop), options).catch(() => undefined);
    void this.result.then((result) => {
      this.#checkRefusal(result);
      this.#over = true;
      this.#parts.ended?.();
    });
  }

  /** A call that failed without being executed here was forbidden by the host. */
  #checkRefusal(result: CallResult | undefined): void {
    if (result?.kind === "failed" && this.live === undefined) this.#parts.forbidden(this.title);
  }

  end(end: End): void {
    // An announced call is recorded even if it ends first.
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
      // If its run is stopped, the stop of the whole prompt stops it; that signal may abort later in the same tick.
      stopped = Promise.resolve().then(async () => {
        if (!turn.signal.aborted) await stopThis?.();
      });
    };
    if (call.signal.aborted) stop();
    call.signal.addEventListener("abort", stop, { once: true });
    const end = await this.#ended.promise;
    call.signal.removeEventListener("abort", stop);
    // The agent may report the end of a command when only its first process is gone.
    await stopped;
    const result = resultOf(this.#state);
    for (const path of end.kind === "completed" || end.kind === "unknown" ? changedBy(this.#state) : []) {
      call.changed(path);
    }
    if (end.kind === "completed") return result;
    if (result !== undefined) call.partial(result);
    // Agents report a stopped call as failed. Its message is in the partial result.
    if (call.stopping) throw new DOMException("The agent stopped it.", "AbortError");
    if (end.kind === "denied") throw Object.assign(new Error(end.why), { name: "Denied", code: "denied" });
    throw new Error(end.kind === "failed" ? failureOf(result) : end.why);
  }

  /** `shown`: content to display for approval, where the agent gave no input. */
  #input(shown: readonly CallContent[]): Json {
    const { input, sort, paths = [] } = this.#state;
    if (input !== undefined) return input;
    return keptJson({
      ...(sort === undefined ? {} : { kind: sort }),
      ...(paths.length === 0 ? {} : { paths }),
      ...(shown.length === 0 ? {} : { content: shown.map(contentJson) }),
    });
  }

  /** The agent's own id of the call, and details that Belay's record has no field for. */
  #provider(): { readonly id: string; readonly data: Json } {
    const { id, sort, status, locations } = this.#state;
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

/** The text alone if there is nothing else, which is the usual case. */
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
  typeof result === "string" && result !== ""
    ? brief(result, PROGRESS_CHARS_MAX)
    : "The agent reported that it failed.";
