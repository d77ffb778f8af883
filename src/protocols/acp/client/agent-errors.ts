// A foreign agent that did not do what was asked, in words for people. The code goes into the outcome of the run.

export type FailureCode =
  /** It could not be brought to work: it does not start, does not speak, or wants somebody to log in. */
  | "agent_unusable"
  /** It said that it failed. */
  | "agent_failed"
  /** It ended in the middle of the work. */
  | "agent_ended"
  /** It stopped although nobody here had asked it to. */
  | "agent_stopped";

export class AgentError extends Error {
  override readonly name = "AgentFailed";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
