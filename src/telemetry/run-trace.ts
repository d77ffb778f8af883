// The spans of one run: its own, and those of its turns and calls. Names and attributes as the conventions for
// generative systems have them; what they have no word for is called `belay.…`.
//
// Invariant: ended once, with everything that is still open in it.
import {
  type Attributes,
  type Context,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { CancelReason, Outcome } from "../core/model/cancel.ts";
import type { Recorded } from "../core/model/event.ts";
import type { CallId, RunId, SessionId, Work } from "../core/model/ids.ts";
import { SPAN_NAME_CHARS_MAX, SPANS_PER_RUN_MAX } from "./limits.ts";
import type { Redact } from "./redactor.ts";

export interface RunBegun {
  readonly tracer: Tracer;
  readonly redact: Redact;
  readonly session: SessionId;
  readonly runId: RunId;
  readonly at: number;
  readonly attempt: number;
}

export interface CancelTold {
  readonly scope: "session" | "run" | "call" | "process";
  readonly reason: CancelReason;
  readonly at: number;
}

/** `parked`: it goes on in another life. `unknown`: how it went on is not told here. */
type Ending = Outcome | { readonly kind: "parked" | "unknown" };

type Of<T extends Recorded["type"]> = Extract<Recorded, { readonly type: T }>;

interface OpenSpan {
  readonly span: Span;
  readonly since: number;
}

/** What a tool is called. A call of an agent behind Belay may be named by its whole command, which is private. */
const TOOL_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

export class RunTrace {
  readonly #begun: RunBegun;
  readonly #context: Context;
  readonly #own: OpenSpan;
  readonly #works = new Map<Work, OpenSpan>();

  constructor(begun: RunBegun) {
    this.#begun = begun;
    const attributes = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": begun.session,
      "belay.run.id": begun.runId,
      "belay.run.attempt": begun.attempt,
    };
    // A root: whatever happens to be active while an event is told has nothing to do with it.
    const options = { kind: SpanKind.INTERNAL, root: true, startTime: moment(begun.at), attributes };
    const span = begun.tracer.startSpan("invoke_agent", options, ROOT_CONTEXT);
    this.#own = { span, since: begun.at };
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  /** A request to stop it, or one of its calls. */
  cancelled({ scope, reason, at }: CancelTold, call?: CallId): void {
    const told = call === undefined ? this.#own : (this.#works.get(call) ?? this.#own);
    const attributes = { "belay.cancel.scope": scope, "belay.cancel.reason": reason.kind };
    told.span.addEvent("belay.cancel_requested", attributes, moment(at));
  }

  beginTurn({ turnId, at }: Of<"turn.requested">): void {
    this.#begin(turnId, at, {
      name: "chat",
      kind: SpanKind.CLIENT,
      attributes: { "gen_ai.operation.name": "chat", "belay.turn.id": turnId },
    });
  }

  endTurn({ turnId, at, usage, model, outcome }: Of<"turn.settled">): void {
    const used =
      usage === undefined
        ? {}
        : {
            "gen_ai.usage.input_tokens": usage.inputTokens,
            "gen_ai.usage.output_tokens": usage.outputTokens,
            "belay.usage.estimated": usage.estimated,
          };
    const answered =
      model === undefined
        ? {}
        : { "gen_ai.provider.name": model.provider, "gen_ai.response.model": this.#begun.redact(model.id) };
    this.#end(turnId, at, outcome, { ...used, ...answered });
  }

  beginCall({ callId, at }: Of<"call.requested">, called: string): void {
    const name = TOOL_NAME.test(called) ? called : "tool";
    this.#begin(callId, at, {
      name: `execute_tool ${name}`,
      kind: SpanKind.INTERNAL,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": callId,
      },
    });
  }

  endCall({ callId, at, outcome }: Of<"call.settled">): void {
    // A call that was cancelled is not an error: `belay.outcome` says so, and its status stays unset.
    this.#end(callId, at, outcome, {});
  }

  end(at: number, ending: Ending): void {
    for (const work of [...this.#works.keys()]) this.#end(work, at, { kind: "unknown" }, {});
    this.#close(this.#own, at, ending, {});
  }

  /** Nobody will tell how it ends. The time is that of the last thing known, or now. */
  leave(at?: number): void {
    for (const { span } of this.#works.values()) endUnknown(span, at);
    this.#works.clear();
    endUnknown(this.#own.span, at);
  }

  #begin(work: Work, at: number, about: { name: string; kind: SpanKind; attributes: Attributes }): void {
    // After a crash a turn is asked again under its old name.
    this.#end(work, at, { kind: "unknown" }, {});
    if (this.#works.size >= SPANS_PER_RUN_MAX) return;
    const { name, kind, attributes } = about;
    const span = this.#begun.tracer.startSpan(name, { kind, startTime: moment(at), attributes }, this.#context);
    this.#works.set(work, { span, since: at });
  }

  #end(work: Work, at: number, ending: Ending, attributes: Attributes): void {
    const open = this.#works.get(work);
    if (open === undefined) return;
    this.#works.delete(work);
    this.#close(open, at, ending, attributes);
  }

  #close({ span, since }: OpenSpan, at: number, ending: Ending, attributes: Attributes): void {
    span.setAttributes({ ...attributes, "belay.outcome": ending.kind, ...this.#why(ending) });
    if (ending.kind === "failed" || ending.kind === "lost") span.setStatus({ code: SpanStatusCode.ERROR });
    // Wall clocks are set now and then, and nothing ends before it begins.
    span.end(moment(Math.max(since, at)));
  }

  #why(ending: Ending): Attributes {
    switch (ending.kind) {
      case "cancelled":
        return { "belay.cancel.reason": ending.reason.kind };
      case "failed":
        // The code only: the message may quote what was said.
        return { "error.type": this.#begun.redact(ending.code).slice(0, SPAN_NAME_CHARS_MAX) };
      case "lost":
        return { "error.type": "lost" };
      default:
        return {};
    }
  }
}

function endUnknown(span: Span, at: number | undefined): void {
  span.setAttributes({ "belay.outcome": "unknown" });
  span.end(at === undefined ? undefined : moment(at));
}

/** Not a plain number: one that lies before the start of the program would be taken for a duration. */
const moment = (at: number): HrTime => [Math.floor(at / 1_000), Math.round((at % 1_000) * 1_000_000)];
