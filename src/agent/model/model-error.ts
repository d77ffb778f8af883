// A model request that failed. Its code becomes the code of the run's outcome.

/**
 * - `model_error`: the provider reported an error that is not worth a retry, or its answer broke off.
 * - `model_timeout`: the provider did not begin to answer, or stopped sending.
 * - `model_rejected`: the provider rejects this request and would reject it again.
 * - `model_overloaded`: the provider was unavailable at every attempt.
 */
export type ModelErrorCode = "model_error" | "model_timeout" | "model_rejected" | "model_overloaded";

export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
