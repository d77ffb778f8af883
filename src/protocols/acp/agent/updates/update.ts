// Updates about a session, independent of the protocol version. Types only.
import type { Outcome } from "../../../../core/model/cancel.ts";
import type { Exit, Usage } from "../../../../core/model/event.ts";
import type { CallId, ProcessId, RunId } from "../../../../core/model/ids.ts";
import type { Json } from "../../../../core/model/prompt.ts";
import type { Question } from "../../../../core/model/question.ts";
import type { CallDetails } from "../agent-details.ts";
import type { ModeChoice } from "../mode-choice.ts";

export type Update = RunUpdate | CallUpdate | TerminalUpdate | SessionUpdate;

/** Updates about a run and its text. */
export type RunUpdate =
  /** It begins, with its prompt. A run started by a background result has none. */
  | { readonly type: "began"; readonly runId: RunId; readonly prompt: string | undefined }
  /** A steer was taken into the live run. */
  | { readonly type: "taken"; readonly runId: RunId; readonly prompt: string }
  | {
      readonly type: "said";
      readonly runId: RunId;
      readonly by: "agent" | "thought";
      readonly messageId: string;
      readonly text: string;
    }
  /** Replaces the text of a message. */
  | { readonly type: "replaced"; readonly runId: RunId; readonly messageId: string; readonly text: string }
  | { readonly type: "asked"; readonly runId: RunId; readonly question: Question }
  | { readonly type: "answered"; readonly runId: RunId; readonly questionId: string; readonly open: number }
  | {
      readonly type: "ended";
      readonly runId: RunId;
      readonly outcome: Outcome;
      readonly usage: Usage | undefined;
      /** Whether it had begun. A run that was withdrawn before does not change the session's state. */
      readonly begun: boolean;
    };

export type CallUpdate =
  | {
      readonly type: "call";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly name: string;
      readonly input: Json;
      readonly stoppable: boolean;
      /** Details from the agent behind Belay. Undefined for a call of Belay's own agent. */
      readonly details?: CallDetails | undefined;
    }
  /** It waits for an answer, or continues. */
  | {
      readonly type: "call-phase";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly phase: "waits" | "continues";
    }
  | {
      readonly type: "call-progress";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly text: string;
      readonly details?: CallDetails | undefined;
    }
  | {
      readonly type: "call-ended";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly outcome: Outcome;
      readonly result: Json | undefined;
      readonly changes: readonly string[];
      readonly processes: readonly ProcessId[];
    };

/** Updates about a process. */
export type TerminalUpdate =
  | {
      readonly type: "process";
      readonly processId: ProcessId;
      readonly command: string;
      readonly cwd: string | undefined;
      /** The call that owns it, with all its processes so far. Undefined: it runs in the background. */
      readonly call: { readonly callId: CallId; readonly processes: readonly ProcessId[] } | undefined;
    }
  | {
      readonly type: "process-output";
      readonly processId: ProcessId;
      readonly callId: CallId | undefined;
      readonly tail: string;
    }
  | {
      readonly type: "process-ended";
      readonly processId: ProcessId;
      readonly exit: Exit | undefined;
      readonly tail: string | undefined;
    };

export type SessionUpdate =
  /** The session's mode from now on, and the available modes. */
  | ({ readonly type: "mode" } & ModeChoice)
  | { readonly type: "compacted"; readonly id: string; readonly summary: string }
  | { readonly type: "notice"; readonly title: string; readonly text: string };
