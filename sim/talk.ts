// What people and the model were told, looked at as a whole: every question has one end, every reminder and every post
// is heard once, and nobody is still waiting.
import type { Recorded } from "../src/core/event.ts";
import type { CallId, SessionId } from "../src/core/ids.ts";
import type { Item } from "../src/core/inbox.ts";
import type { QuestionFacts } from "./facts.ts";
import { type AnswerRecord, type CancelRecord, what } from "./records.ts";
import type { Simulation } from "./simulation.ts";

export function checkTalk(simulation: Simulation): void {
  checkQuestions(simulation);
  checkReminders(simulation);
  checkPosts(simulation);
  checkWaiting(simulation);
}

/** An answer that is in the log is one that somebody gave, and only that one was told that it counts. */
function checkQuestions(simulation: Simulation): void {
  const { facts, clients } = simulation;
  const answers = clients.asked.filter((record) => record.kind === "answer");
  for (const question of facts.questions.values()) {
    const { id, ending, owner } = question;
    if (ending === undefined) {
      simulation.violate("G8", `${id} of ${owner} is still open.`);
      continue;
    }
    const counted = answers.filter((record) => record.questionId === id && record.receipt?.kind === "recorded");
    if (counted.length > 1) simulation.violate("G14", `${id} was answered ${counted.length} times.`);
    if (ending.kind === "withdrawn" && ending.reason.kind === "parent") checkAskedOnce(simulation, question);
    if (ending.kind === "expired" || ending.kind === "withdrawn") {
      if (counted.length > 0) simulation.violate("G14", `${id} is ${ending.kind}, and somebody was told otherwise.`);
      if (ending.kind === "expired" && ending.limitMs !== question.deadlineMs) {
        simulation.violate("G34", `${id} ended after ${ending.limitMs} ms; it had ${question.deadlineMs}.`);
      }
      continue;
    }
    const said = answers.find((record) => JSON.stringify(record.reply) === JSON.stringify(ending));
    if (said === undefined || !answersTo(simulation, said, question)) {
      simulation.violate("G14", `${id} has an answer that nobody gave to it.`);
    }
  }
}

/** Whoever has seen an approval can answer it, also after a restart: it is not asked again under another name. */
function checkAskedOnce(simulation: Simulation, { id, owner, about }: QuestionFacts): void {
  const later = [...simulation.facts.questions.values()].filter((one) => one.owner === owner && isLater(one.id, id));
  const digest = (one: QuestionFacts | undefined): string | undefined =>
    one?.about.kind === "approval" ? one.about.digest : undefined;
  // The next one: a host that has put other bytes in its place in between may have changed its mind.
  const [next] = later.filter((one) => one.about.kind === "approval");
  if (about.kind === "approval" && digest(next) === about.digest) {
    simulation.violate("G25", `${id} was closed, and ${next?.id} asks for the same.`);
  }
}

const isLater = (one: string, other: string): boolean =>
  Number(one.split(".").at(-1)) > Number(other.split(".").at(-1));

/** An approval for the whole session is also one for what waits already. */
function answersTo({ facts }: Simulation, { questionId, reply }: AnswerRecord, question: QuestionFacts): boolean {
  if (questionId === question.id) return true;
  if (reply.kind !== "allowed" || reply.remember !== "session") return false;
  const answered = facts.questions.get(questionId);
  const scope = (one: QuestionFacts | undefined): string | undefined =>
    one?.about.kind === "approval" ? one.about.scope : undefined;
  return answered?.session === question.session && scope(answered) === scope(question);
}

/** Somebody stopped a call and wanted the model to know: it is told once, unless the call had ended by itself. */
function checkReminders(simulation: Simulation): void {
  const { facts, clients } = simulation;
  for (const record of clients.asked) {
    const call = record.kind === "cancel" ? callOf(simulation, record) : undefined;
    if (record.kind !== "cancel" || call === undefined) continue;
    const cancel = facts.works.get(call)?.cancel;
    const mine = cancel?.reason.kind === "user" && cancel.reason.note === record.note;
    const wanted = record.remind || record.scope === "question";
    if (mine && cancel.remind !== wanted) {
      simulation.violate("G9", `${what(record)} ${wanted ? "wants" : "does not want"} a reminder.`);
    }
  }
  checkAims(simulation);
  for (const work of facts.works.values()) {
    if (work.name === "turn" || work.settled === undefined) continue;
    const session = facts.runs.get(work.runId)?.session;
    const { kind } = work.settled.outcome;
    const wanted = work.cancel?.remind === true && (kind === "cancelled" || kind === "lost");
    const about = (item: Item): boolean => item.kind === "reminder" && callIn(item) === work.id;
    if (session !== undefined) checkHeard(simulation, session, `the reminder of ${work.id}`, about, wanted ? 1 : 0);
  }
}

/** A cancel that is recorded of a call was aimed at this call. */
function checkAims(simulation: Simulation): void {
  const { facts, clients } = simulation;
  for (const { id, cancel } of facts.works.values()) {
    const note = cancel?.reason.kind === "user" ? cancel.reason.note : undefined;
    if (note === undefined) continue;
    const aimed = clients.asked.some(
      (record) => record.kind === "cancel" && record.note === note && callOf(simulation, record) === id,
    );
    if (!aimed) simulation.violate("G10", `${id} was cancelled by somebody who meant something else.`);
  }
}

/** The call that a cancel was aimed at. */
function callOf({ facts }: Simulation, { scope, target }: CancelRecord): CallId | undefined {
  if (scope === "call") return target as CallId;
  const question = scope === "question" ? facts.questions.get(target as `ask_${string}`) : undefined;
  return question?.about.kind === "approval" ? (question.owner as CallId) : undefined;
}

function callIn({ data }: Item): unknown {
  return typeof data === "object" && data !== null && "callId" in data ? data.callId : undefined;
}

function checkPosts(simulation: Simulation): void {
  for (const record of simulation.clients.asked) {
    if (record.kind !== "post" || record.receipt?.kind !== "posted") continue;
    const about = (item: Item): boolean => item.text === record.text;
    checkHeard(simulation, record.session, what(record), about, 1);
  }
}

/** Added this often; and, if there was a turn after it, said to exactly one. */
function checkHeard(
  simulation: Simulation,
  session: SessionId,
  name: string,
  about: (item: Item) => boolean,
  expected: 0 | 1,
): void {
  const log = simulation.facts.log(session);
  const added = log.filter((event) => event.type === "inbox.added" && about(event.item));
  if (added.length !== expected) simulation.violate("G22", `${name} was put into the inbox ${added.length} times.`);
  const taken = log.filter((event) => event.type === "inbox.taken" && event.items.some(about));
  const since = added[0]?.seq ?? log.length;
  const turns = log.some((event: Recorded) => event.type === "turn.requested" && event.seq > since);
  if (taken.length !== (turns && expected === 1 ? 1 : 0) && (turns || taken.length > 1)) {
    simulation.violate("G22", `${name} was said to ${taken.length} turns.`);
  }
}

/** Nobody waits for ever: neither who asked, nor who called, nor who wants a place. */
function checkWaiting(simulation: Simulation): void {
  const { life } = simulation;
  for (const actor of [...life.actors.turns, ...life.actors.calls]) {
    if (actor.asks > 0) simulation.violate("G8", `${actor.id} still waits for an answer.`);
    if ("waitsFor" in actor && actor.waitsFor > 0) simulation.violate("G8", `${actor.id} still waits for a call.`);
    if ("pending" in actor && actor.pending > 0)
      simulation.violate("G8", `${actor.id} still waits for something it asked.`);
  }
  const { held, waiting } = life.actors.places;
  if (held > 0) simulation.violate("G33", `${held} places are taken, at rest.`);
  if (waiting > 0) simulation.violate("G33", `${waiting} calls still wait for a place.`);
}
