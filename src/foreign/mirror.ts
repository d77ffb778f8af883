// A call of a foreign agent as a call of Belay: recorded, shown, approved and ended like any other.
//
// Invariants
// 1. A call that only waits to begin, or has begun this moment, is held back: if the agent then asks for leave, the
//    call itself waits for it.
// 2. It ends when the agent says so, when its prompt has ended, or when the agent is gone; and then once.
import type { Json } from "../core/prompt.ts";
import type { Approval, CallResult, LiveCall, Turn } from "../ports.ts";
import { brief, keptJson } from "./kept-json.ts";
import { CALL_CHARS_MAX, HOLD_MS, NAME_CHARS_MAX, PROGRESS_CHARS_MAX } from "./limits.ts";
import { type CallContent, type CallNews, withNews } from "./update.ts";

/** How the foreign call ended. `unknown`: nobody said. */
type End =
  | { readonly kind: "completed" }
  | { readonly kind: "failed" }
  | { readonly kind: "unknown"; readonly why: string };

export interface MirrorParts {
  readonly turn: Turn;
  /** Asks the agent to end this one call. Undefined: it cannot do that. */
  readonly cancel: ((id: string) => void) | undefined;
  /** Told of a call that the host forbids, and that the agent has begun without having asked. */
  readonly forbidden: (title: string) => void;
}

export class Mirror {
  /** The call is being carried out: whoever had to give leave has given it. */
  readonly begun: Promise<LiveCall>;
  /** What became of it here. Undefined: it never was a call, or it was refused. */
  result: Promise<CallResult | undefined> | undefined = undefined;
  live: LiveCall | undefined = undefined;
  readonly #parts: MirrorParts;
  readonly #begun = Promise.withResolvers<LiveCall>();
  readonly #ended = Promise.withResolvers<End>();
  #news: CallNews;
  #asksLeave = false;
  #over = false;
  #takeBack: (() => void) | undefined = undefined;

  constructor(id: string, parts: MirrorParts) {
    this.#news = { id, ...NOTHING_SAID };
    this.#parts = parts;
    this.begun = this.#begun.promise;
  }

  /** Whether it is a call by now, and whether that waits until people have given leave. */
  get phase(): "held" | "asks leave" | "called" {
    if (this.result === undefined) return "held";
    return this.#asksLeave && this.live === undefined ? "asks leave" : "called";
  }

  get title(): string {
    const { title, tool, sort } = this.#news;
    return brief((title ?? tool ?? sort ?? "tool").replaceAll(/\s+/g, " ").trim() || "tool", NAME_CHARS_MAX);
  }

  /** What a leave for the whole session would cover: the tool where it has a name, else exactly this. */
  get scope(): string {
    return brief(this.#news.tool ?? this.title, NAME_CHARS_MAX);
  }

  told(news: CallNews): void {
    if (this.#over) return;
    this.#news = withNews(this.#news, news);
    const { status } = this.#news;
    if (status === "completed" || status === "failed") {
      this.begin();
      this.end({ kind: status });
    } else if (this.live !== undefined) {
      if (news.content !== undefined) this.#tellProgress(this.live);
    } else if (status === "in_progress") {
      this.#takeBack ??= this.#parts.turn.clock.after(HOLD_MS, () => this.begin());
    } else {
      this.#letGo();
    }
  }

  /** Makes a call of it, once. With `approval` people are asked before it counts as begun. */
  begin(approval?: Approval): void {
    this.#letGo();
    if (this.result !== undefined) return;
    const { turn, cancel } = this.#parts;
    this.#asksLeave = approval !== undefined;
    const options = { again: "begin", interruptible: cancel !== undefined } as const;
    const asked = approval === undefined ? options : { ...options, approval };
    const input = this.#input(approval === undefined ? [] : (this.#news.content ?? []));
    this.result = turn.call(this.title, input, (call) => this.#carryOut(call), asked).catch(() => undefined);
    if (approval === undefined) void this.result.then((result) => this.#lookAt(result));
  }

  /** One that never came to be carried out here, and failed, was forbidden. */
  #lookAt(result: CallResult | undefined): void {
    if (result?.kind === "failed" && this.live === undefined) this.#parts.forbidden(this.title);
  }

  end(end: End): void {
    // What had begun is told of, also if it ends before it was.
    if (this.#takeBack !== undefined) this.begin();
    this.#over = true;
    this.#ended.resolve(end);
  }

  #letGo(): void {
    this.#takeBack?.();
    this.#takeBack = undefined;
  }

  async #carryOut(call: LiveCall): Promise<Json | undefined> {
    this.live = call;
    this.#begun.resolve(call);
    const { cancel, turn } = this.#parts;
    const stop = (): void => {
      // With its run it is stopped by the stop of the whole prompt.
      if (!turn.signal.aborted) cancel?.(this.#news.id);
    };
    if (call.signal.aborted) stop();
    call.signal.addEventListener("abort", stop, { once: true });
    const end = await this.#ended.promise;
    call.signal.removeEventListener("abort", stop);
    const result = resultOf(this.#news);
    for (const path of end.kind === "failed" ? [] : changedBy(this.#news)) call.changed(path);
    if (end.kind === "completed") return result;
    if (result !== undefined) call.partial(result);
    // Agents report a call that they have stopped as failed. What it said about that is in its partial result.
    if (call.stopping) throw new DOMException("The agent has stopped it.", "AbortError");
    throw new Error(end.kind === "failed" ? failureOf(result) : end.why);
  }

  /** `shown`: what people should see before they give leave, where the agent has no better words for it. */
  #input(shown: readonly CallContent[]): Json {
    const { input, sort, paths = [] } = this.#news;
    if (input !== undefined) return input;
    return keptJson({
      ...(sort === undefined ? {} : { kind: sort }),
      ...(paths.length === 0 ? {} : { paths }),
      ...(shown.length === 0 ? {} : { content: shown.map(contentJson) }),
    });
  }

  #tellProgress(call: LiveCall): void {
    const text = textOf(this.#news.content ?? []);
    if (text !== "") call.progress({ text: text.slice(-PROGRESS_CHARS_MAX).toWellFormed() });
  }
}

const NOTHING_SAID = {
  ...{ title: undefined, tool: undefined, sort: undefined, status: undefined, content: undefined },
  ...{ paths: undefined, input: undefined, output: undefined },
};

/** The text alone if there is nothing else: that is what most tools say. */
function resultOf({ content = [], output }: CallNews): Json | undefined {
  const text = brief(textOf(content), CALL_CHARS_MAX);
  const diffs = content.filter((one) => one.kind === "diff");
  if (diffs.length === 0) return text === "" ? output : text;
  return keptJson({ ...(text === "" ? {} : { text }), diffs: diffs.map(contentJson) });
}

const changedBy = ({ content = [] }: CallNews): readonly string[] =>
  content.flatMap((one) => (one.kind === "diff" ? [one.path] : []));

const textOf = (content: readonly CallContent[]): string =>
  content.flatMap((one) => (one.kind === "text" && one.text !== "" ? [one.text] : [])).join("\n");

function contentJson(one: CallContent): Json {
  if (one.kind === "text") return { text: one.text };
  return { path: one.path, ...(one.before === undefined ? {} : { before: one.before }), after: one.after };
}

const failureOf = (result: Json | undefined): string =>
  typeof result === "string" && result !== "" ? brief(result, PROGRESS_CHARS_MAX) : "The agent says that it failed.";
