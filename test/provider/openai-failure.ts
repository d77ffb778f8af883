// How OpenAI says that something failed, in both of its formats.

const TYPES: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  400: ["invalid_request_error", null],
  401: ["invalid_request_error", "invalid_api_key"],
  404: ["invalid_request_error", "model_not_found"],
  429: ["rate_limit_error", "rate_limit_exceeded"],
  503: ["server_error", "server_overloaded"],
};

export function openaiFailure(status: number, message: string): object {
  const [type, code] = TYPES[status] ?? ["server_error", "server_error"];
  return { error: { message, type, param: null, code } };
}
