// Errors of an external agent, with a message for people. The code becomes the code of the run's outcome.

export type FailureCode =
  /** It does not start, does not speak the protocol, or requires a login. */
  | "agent_unusable"
  /** It reported a failure. */
  | "agent_failed"
  /** Its process ended during the work. */
  | "agent_ended"
  /** It reported a cancel that Belay had not requested. */
  | "agent_stopped";

export class AgentError extends Error {
  override readonly name = "AgentFailed";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
