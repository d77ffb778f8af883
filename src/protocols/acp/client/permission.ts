// Permission requests of an external agent: Belay asks people to approve exactly that call, and returns the answer.
//
// Invariants
// 1. Every request is answered once, with one of the agent's own options or with `cancelled`.
// 2. Without an explicit approval the answer is no, whatever goes wrong.
import type { RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { QuestionOutcome } from "../../../core/model/question.ts";
import type { CallResult } from "../../../ports/agent.ts";
import type { Leave } from "./external-agent-options.ts";
import { brief, isObject } from "./kept-json.ts";
import { NAME_CHARS_MAX } from "./limits.ts";
import type { MirroredCall } from "./mirrored-call.ts";

interface Option {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
}

/** Options beyond this number are not shown. */
const OPTIONS_MAX = 16;

export function readOptions(params: unknown): readonly Option[] {
  const given = isObject(params) && Array.isArray(params.options) ? params.options : [];
  return given.slice(0, OPTIONS_MAX).flatMap((one: unknown): readonly Option[] => {
    const { optionId, name, kind } = isObject(one) ? one : {};
    return typeof optionId === "string" && typeof name === "string" && typeof kind === "string"
      ? [{ id: optionId, name: brief(name, NAME_CHARS_MAX), kind }]
      : [];
  });
}

/** `gone` resolves when the answer is no longer needed: the run is being stopped, or the request was cancelled. */
export async function requestApproval(
  mirroredCall: MirroredCall,
  options: readonly Option[],
  gone: Promise<void>,
  leave: Leave,
): Promise<RequestPermissionResponse> {
  mirroredCall.begin();
  const answer = leave === "give" ? answerUnasked(mirroredCall, options) : askPeople(mirroredCall, options);
  return Promise.race([answer, gone.then(() => CANCELLED)]);
}

/** With `leave: "give"` only the host's rules can refuse the call. */
async function answerUnasked(
  mirroredCall: MirroredCall,
  options: readonly Option[],
): Promise<RequestPermissionResponse> {
  const first = await Promise.race([mirroredCall.begun.then(() => "allowed" as const), mirroredCall.result]);
  return first === "allowed" ? allow(options) : refuse(first, options);
}

async function askPeople(mirroredCall: MirroredCall, options: readonly Option[]): Promise<RequestPermissionResponse> {
  const call = await Promise.race([mirroredCall.begun, mirroredCall.result?.then(() => undefined)]);
  if (call === undefined) return refuse(await mirroredCall.result, options);
  if (mirroredCall.wasAsked) return askAgain(mirroredCall, options);
  mirroredCall.wasAsked = true;
  try {
    const ending = await call.approve?.(
      { name: mirroredCall.title, input: mirroredCall.shown },
      { scope: mirroredCall.scope },
    );
    if (ending === undefined) return deny(options);
    if (ending.kind === "allowed") return allow(options);
    if (ending.kind === "withdrawn") return CANCELLED;
    mirroredCall.end({ kind: "denied", why: denial(ending) });
    return deny(options);
  } catch {
    // The call was stopped meanwhile, or there are too many questions.
    return deny(options);
  }
}

function denial(ending: QuestionOutcome): string {
  if (ending.kind === "expired") return `Not carried out: not approved within ${ending.limitMs} ms.`;
  const { by, note } = { by: undefined, note: undefined, ...ending };
  return `Not carried out: denied by ${by ?? "the user"}${note === undefined ? "." : `: ${note}`}`;
}

/** Asks again for a call that has begun: a separate question with the agent's own option names. */
async function askAgain(mirroredCall: MirroredCall, options: readonly Option[]): Promise<RequestPermissionResponse> {
  if (options.length === 0) return CANCELLED;
  try {
    const call = await Promise.race([mirroredCall.begun, mirroredCall.result?.then(() => undefined)]);
    if (call === undefined) return deny(options);
    const names = options.map(({ name }) => name);
    const answer = await call.ask({ text: `${mirroredCall.title}?`, options: names, only: true });
    const chosen = answer.kind === "answered" ? options.find(({ name }) => name === answer.value) : undefined;
    return chosen === undefined ? deny(options) : select(chosen);
  } catch {
    // The call was stopped meanwhile, or there are too many questions.
    return deny(options);
  }
}

function refuse(result: CallResult | undefined, options: readonly Option[]): RequestPermissionResponse {
  // Cancelled, because the run begins no new work: the agent is being stopped.
  return result === undefined ? CANCELLED : deny(options);
}

/** Allows once: an approval for the session is remembered by Belay, which then does not ask again. */
const allow = (options: readonly Option[]): RequestPermissionResponse =>
  select(options.find(({ kind }) => kind === "allow_once") ?? options.find(({ kind }) => kind === "allow_always"));

const deny = (options: readonly Option[]): RequestPermissionResponse =>
  select(options.find(({ kind }) => kind === "reject_once") ?? options.find(({ kind }) => kind === "reject_always"));

const select = (option: Option | undefined): RequestPermissionResponse =>
  option === undefined ? CANCELLED : { outcome: { outcome: "selected", optionId: option.id } };

const CANCELLED: RequestPermissionResponse = { outcome: { outcome: "cancelled" } };
