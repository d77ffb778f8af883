// The bridge's methods by name. Each makes its request to the control in the tick in which its line was read, so the
// order of lines is the order of registration.
import type { QueueReceipt } from "../../core/model/command.ts";
import { isRunId } from "../../core/model/ids.ts";
import type { AnswerReceipt } from "../../core/model/question.ts";
import type { Params } from "./message.ts";
import type { Method, MethodContext, Reply } from "./method-context.ts";
import {
  defined,
  invalid,
  isObject,
  optionalChoice,
  optionalReason,
  optionalText,
  optionalWhole,
  promptOf,
  text,
} from "./params.ts";
import { promptMethod } from "./prompt-method.ts";
import { STOP_METHODS } from "./stop-methods.ts";

/** The version of this protocol. It is raised when something that a host relies on changes its meaning. */
const PROTOCOL = 1;

/** Notifications that the bridge sends. */
const NOTIFICATIONS = ["run/accepted", "event", "subscription/ended"] as const;

const now = (result: unknown): Reply => ({ kind: "now", result });
const read = (fetch: () => Promise<unknown>): Reply => ({ kind: "read", read: fetch });

const sessionOf = (context: MethodContext, params: Params) => context.control.session(text(params, "sessionId"));

const BASIC_METHODS = {
  initialize: {
    fields: ["client", "protocol"],
    sort: "look",
    handle: async ({ version }) => {
      const capabilities = { methods: [...METHODS.keys()], notifications: NOTIFICATIONS };
      return now({ protocol: PROTOCOL, version, capabilities });
    },
  },
  ping: { fields: [], sort: "look", handle: async () => now({}) },
  shutdown: {
    fields: ["mode"],
    sort: "change",
    handle: async (context, { params }) => {
      const report = await context.shutDown(optionalChoice(params, "mode", ["park", "cancel"]) ?? "park");
      return now(report ?? {});
    },
  },
} as const satisfies Record<string, Method>;

const SESSION_METHODS = {
  "session/new": {
    fields: ["title", "cwd", "key"],
    sort: "change",
    handle: async ({ control }, { params, record }) => {
      const named = { title: optionalText(params, "title"), cwd: optionalText(params, "cwd") };
      const options = defined({ ...named, key: optionalText(params, "key") });
      const { id } = await control.createSession(options);
      record("created", id);
      return now({ sessionId: id });
    },
  },
  "session/prompt": promptMethod,
  "session/set_mode": {
    fields: ["sessionId", "mode", "by", "key"],
    sort: "change",
    handle: async (context, { params }) => {
      const options = defined({ by: optionalText(params, "by"), key: optionalText(params, "key") });
      return now(await sessionOf(context, params).setMode(text(params, "mode"), options));
    },
  },
  "session/explain": {
    fields: ["sessionId"],
    sort: "look",
    handle: async (context, { params }) => {
      const session = sessionOf(context, params);
      return read(() => session.explain());
    },
  },
  "session/transcript": {
    fields: ["sessionId"],
    sort: "look",
    handle: async (context, { params }) => {
      const session = sessionOf(context, params);
      return read(async () => ({ messages: await session.transcript() }));
    },
  },
  "session/subscribe": {
    fields: ["sessionId", "after", "deltas"],
    sort: "look",
    handle: async (context, { params }) => {
      const session = sessionOf(context, params);
      const after = optionalWhole(params, "after", Number.MAX_SAFE_INTEGER) ?? 0;
      const deltas = optionalChoice(params, "deltas", ["with", "without"]) ?? "without";
      const begin = await context.subscriptions.add(session, { after, deltas });
      return { kind: "now", result: { sessionId: session.id, after, deltas }, afterwards: begin };
    },
  },
  "session/unsubscribe": {
    fields: ["sessionId"],
    sort: "look",
    handle: async (context, { params }) => {
      const { id } = sessionOf(context, params);
      return now({ sessionId: id, unsubscribed: context.subscriptions.remove(id) });
    },
  },
} as const satisfies Record<string, Method>;

const QUEUE_METHODS = {
  "queue/list": {
    fields: ["sessionId"],
    sort: "look",
    handle: async (context, { params }) => {
      const { queue } = sessionOf(context, params);
      return read(async () => ({ queue: await queue.list() }));
    },
  },
  "queue/edit": change(["prompt"], (queue, run, params) => queue.edit(run, promptOf(params), keyOf(params))),
  "queue/move": change(["to"], (queue, run, params) => queue.move(run, placeOf(params), keyOf(params))),
  "queue/withdraw": change(["reason"], (queue, run, params) =>
    queue.withdraw(run, { ...keyOf(params), ...defined({ reason: optionalReason(params) }) }),
  ),
  "queue/steer": change([], (queue, run, params) => queue.steer(run, keyOf(params))),
} as const satisfies Record<string, Method>;

type Queue = ReturnType<MethodContext["control"]["session"]>["queue"];

function change(
  fields: readonly string[],
  ask: (queue: Queue, run: string, params: Params) => Promise<QueueReceipt>,
): Method {
  return {
    fields: ["sessionId", "runId", "key", ...fields],
    sort: "change",
    handle: async (context, { params }) =>
      now(await ask(sessionOf(context, params).queue, text(params, "runId"), params)),
  };
}

const keyOf = (params: Params) => defined({ key: optionalText(params, "key") });

function placeOf({ to }: Params) {
  if (to === "front" || to === "back") return to;
  if (isObject(to) && typeof to.before === "string" && isRunId(to.before)) return { before: to.before };
  throw invalid('`to` must be "front", "back" or { before: runId }.');
}

const QUESTION_METHODS = {
  "question/answer": {
    fields: ["questionId", "kind", "value", "remember", "note", "digest", "by", "key"],
    sort: "change",
    handle: async ({ control }, { params }) => now(await reply(control.questions, params)),
  },
} as const satisfies Record<string, Method>;

/** Rejects fields that another kind would silently ignore; the control checks the rest. */
function reply(questions: MethodContext["control"]["questions"], params: Params): Promise<AnswerReceipt> {
  const id = text(params, "questionId");
  const { value } = params;
  const by = defined({ by: optionalText(params, "by"), key: optionalText(params, "key") });
  const details = defined({ note: optionalText(params, "note"), digest: optionalText(params, "digest") });
  const remember = defined({ remember: optionalChoice(params, "remember", ["session"]) });
  const kind = optionalChoice(params, "kind", ["allowed", "denied", "answered"]);
  if (kind === undefined) throw invalid('`kind` must be one of "allowed", "denied", "answered".');
  if (kind !== "answered" && value !== undefined) throw invalid("`value` is for `answered`.");
  if (kind !== "allowed" && remember.remember !== undefined) throw invalid("`remember` is for `allowed`.");
  if (kind === "allowed") return questions.allow(id, { ...by, ...details, ...remember });
  if (kind === "denied") return questions.deny(id, { ...by, ...details });
  if (value === undefined) throw invalid("`value` is missing.");
  if (details.note !== undefined || details.digest !== undefined)
    throw invalid("`note` and `digest` are for approvals.");
  return questions.answer(id, value, by);
}

export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>(
  Object.entries({
    ...BASIC_METHODS,
    ...SESSION_METHODS,
    ...STOP_METHODS,
    ...QUESTION_METHODS,
    ...QUEUE_METHODS,
  }),
);
