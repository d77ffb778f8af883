// A foreign agent asks for leave: people are asked by Belay, for exactly that call, and the answer goes back.
//
// Invariants
// 1. Every question is answered once, with one of the agent's own options or with `cancelled`.
// 2. Nothing is allowed that nobody has allowed: whatever goes wrong is a no.
import type { RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { CallResult } from "../ports.ts";
import type { Leave } from "./foreign-options.ts";
import { brief, isObject } from "./kept-json.ts";
import { NAME_CHARS_MAX } from "./limits.ts";
import type { Mirror } from "./mirror.ts";

interface Option {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
}

/** Options beyond these are not shown: nobody reads them. */
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

/** `gone` resolves when nobody waits for the answer any more: the run is being stopped, or it was taken back. */
export async function askLeave(
  mirror: Mirror,
  options: readonly Option[],
  gone: Promise<void>,
  leave: Leave,
): Promise<RequestPermissionResponse> {
  if (leave === "give") {
    mirror.begin();
    return Promise.race([decided(mirror, options), gone.then(() => CANCELLED)]);
  }
  // One that waits for leave already is answered by what becomes of that; one that has begun without it asks anew.
  if (mirror.phase === "held") mirror.begin({ scope: mirror.scope });
  const answer = mirror.phase === "asks leave" ? decided(mirror, options) : askAgain(mirror, options);
  return Promise.race([answer, gone.then(() => CANCELLED)]);
}

async function decided(mirror: Mirror, options: readonly Option[]): Promise<RequestPermissionResponse> {
  const first = await Promise.race([mirror.begun.then(() => "allowed" as const), mirror.result]);
  return first === "allowed" ? allow(options) : refuse(first, options);
}

/** A call that has begun, and wants more: a question of its own, with the agent's own words for the answers. */
async function askAgain(mirror: Mirror, options: readonly Option[]): Promise<RequestPermissionResponse> {
  if (options.length === 0) return CANCELLED;
  try {
    const call = await Promise.race([mirror.begun, mirror.result?.then(() => undefined)]);
    if (call === undefined) return deny(options);
    const names = options.map(({ name }) => name);
    const asked = await call.ask({ text: `${mirror.title}?`, options: names, only: true });
    const chosen = asked.kind === "answered" ? options.find(({ name }) => name === asked.value) : undefined;
    return chosen === undefined ? deny(options) : select(chosen);
  } catch {
    // The call was stopped meanwhile, or there are too many questions.
    return deny(options);
  }
}

function refuse(result: CallResult | undefined, options: readonly Option[]): RequestPermissionResponse {
  // Refused as a call, because the run begins nothing new: the agent is being stopped.
  return result === undefined ? CANCELLED : deny(options);
}

/** For this once: what people allow for the whole session is remembered by Belay, which is then not asked again. */
const allow = (options: readonly Option[]): RequestPermissionResponse =>
  select(options.find(({ kind }) => kind === "allow_once") ?? options.find(({ kind }) => kind === "allow_always"));

const deny = (options: readonly Option[]): RequestPermissionResponse =>
  select(options.find(({ kind }) => kind === "reject_once") ?? options.find(({ kind }) => kind === "reject_always"));

const select = (option: Option | undefined): RequestPermissionResponse =>
  option === undefined ? CANCELLED : { outcome: { outcome: "selected", optionId: option.id } };

const CANCELLED: RequestPermissionResponse = { outcome: { outcome: "cancelled" } };
