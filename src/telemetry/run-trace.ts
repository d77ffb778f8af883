// The spans of one run: its own, and those of its turns and calls. Names and attributes follow OpenTelemetry's semantic
// conventions for generative AI; anything that they do not cover is called `belay.…`.
//
// Invariant: the run's span ends once, together with every open span inside it.
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

export interface RunTraceOptions {
  readonly tracer: Tracer;
  readonly redact: Redact;
  readonly session: SessionId;
  readonly runId: RunId;
  readonly at: number;
  readonly attempt: number;
}

export interface RequestedCancel {
  readonly scope: "session" | "run" | "call" | "process";
  readonly reason: CancelReason;
  readonly at: number;
}

/** `parked`: the run resumes after a restart. `unknown`: this process did not see how it ended. */
type Ending = Outcome | { readonly kind: "parked" | "unknown" };

type Of<T extends Recorded["type"]> = Extract<Recorded, { readonly type: T }>;

interface OpenSpan {
  readonly span: Span;
  readonly since: number;
}

/** The form of a tool's name. An external agent may name a call by its whole command, which is private. */
const TOOL_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

export class RunTrace {
  readonly #options: RunTraceOptions;
  readonly #context: Context;
  readonly #own: OpenSpan;
  readonly #works = new Map<Work, OpenSpan>();

  constructor(run: RunTraceOptions) {
    this.#options = run;
    const attributes = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": run.session,
      "belay.run.id": run.runId,
      "belay.run.attempt": run.attempt,
    };
    // A root span: the span that is active while an event is observed is unrelated to the run.
    const options = { kind: SpanKind.INTERNAL, root: true, startTime: hrTime(run.at), attributes };
    const span = run.tracer.startSpan("invoke_agent", options, ROOT_CONTEXT);
    this.#own = { span, since: run.at };
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  /** Adds the cancel of the run, or of one of its calls, as an event of its span. */
  cancelled({ scope, reason, at }: RequestedCancel, call?: CallId): void {
    const target = call === undefined ? this.#own : (this.#works.get(call) ?? this.#own);
    const attributes = { "belay.cancel.scope": scope, "belay.cancel.reason": reason.kind };
    target.span.addEvent("belay.cancel_requested", attributes, hrTime(at));
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
        : { "gen_ai.provider.name": model.provider, "gen_ai.response.model": this.#options.redact(model.id) };
    this.#end(turnId, at, outcome, { ...used, ...answered });
  }

  beginCall({ callId, at }: Of<"call.requested">, tool: string): void {
    const name = TOOL_NAME.test(tool) ? tool : "tool";
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
    // A cancelled call is not an error: its status stays unset, and `belay.outcome` is `cancelled`.
    this.#end(callId, at, outcome, {});
  }

  end(at: number, ending: Ending): void {
    for (const work of [...this.#works.keys()]) this.#end(work, at, { kind: "unknown" }, {});
    this.#close(this.#own, at, ending, {});
  }

  /** Ends all spans with an unknown outcome, at the given time or now. */
  leave(at?: number): void {
    for (const { span } of this.#works.values()) endUnknown(span, at);
    this.#works.clear();
    endUnknown(this.#own.span, at);
  }

  #begin(work: Work, at: number, about: { name: string; kind: SpanKind; attributes: Attributes }): void {
    // After a crash a turn is requested again under its old id.
    this.#end(work, at, { kind: "unknown" }, {});
    if (this.#works.size >= SPANS_PER_RUN_MAX) return;
    const { name, kind, attributes } = about;
    const span = this.#options.tracer.startSpan(name, { kind, startTime: hrTime(at), attributes }, this.#context);
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
    // The wall clock may have been set back, but a span must not end before it begins.
    span.end(hrTime(Math.max(since, at)));
  }

  #why(ending: Ending): Attributes {
    switch (ending.kind) {
      case "cancelled":
        return { "belay.cancel.reason": ending.reason.kind };
      case "failed":
        // Only the code: the message may quote prompts and answers.
        return { "error.type": this.#options.redact(ending.code).slice(0, SPAN_NAME_CHARS_MAX) };
      case "lost":
        return { "error.type": "lost" };
      default:
        return {};
    }
  }
}

function endUnknown(span: Span, at: number | undefined): void {
  span.setAttributes({ "belay.outcome": "unknown" });
  span.end(at === undefined ? undefined : hrTime(at));
}

/** Not a plain number: the API would take a time before the start of the process for a duration. */
const hrTime = (at: number): HrTime => [Math.floor(at / 1_000), Math.round((at % 1_000) * 1_000_000)];
