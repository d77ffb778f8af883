// A request to a model that came to nothing, or broke off. Its code is the code of the run's outcome.

/**
 * - `model_error`: the provider said so, in the middle of an answer or for good.
 * - `model_timeout`: it did not begin, or did not go on.
 * - `model_rejected`: it does not take this request, and would not take it a second time.
 * - `model_overloaded`: it could not now, as often as we asked.
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
