// Mistakes about approvals, questions, reminders and the inbox.
import type { CommandOf } from "../../src/core/model/command.ts";
import type { Event } from "../../src/core/model/event.ts";
import type { Lane } from "../../src/core/model/lane.ts";
import type { Question, QuestionReply } from "../../src/core/model/question.ts";
import type { CallRequest } from "../../src/ports/agent.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline, type Place } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** Where a mistake keeps, beside the state, what was approved in any session. */
type Granting = { granted?: Set<string> };

/** The state that an expression makes, with an empty inbox. */
const withoutInbox = (lane: Place) => lane.become(inline((made: Lane): Lane => ({ ...made, inbox: [] }), lane));

/** The input as the model asked for it. `request`: where the request of the call is read. */
const asRequested = (request: Place) => inline((given: CallRequest) => given.input, request.value());

export const TALK_BUGS: readonly Bug[] = [
  mistake(
    "approval-outlives-its-run",
    "A stop of the run leaves its approvals open; a later answer starts a stale call (PraisonAI#4598, goose#12132).",
    (at) => at.value().part(1, 2).remove(),
  ),
  mistake(
    "approval-outlives-its-call",
    "A stop of one call leaves its approval open (deepchat#1881, agent-shell#88: the permission box stays).",
    (at) => at.value().part(1, 2).remove(),
  ),
  mistake("approval-outlives-its-turn", "The questions of a turn stay open after the turn has ended.", (at) =>
    at.value().become("[]"),
  ),
  mistake(
    "answered-twice",
    "A question stays open after its answer, and a second answer is recorded beside the first.",
    (at) => at.value().part(1, 3).value().become(at.value().part(1, 3).value().arg(0, 2).text),
  ),
  mistake("expired-means-yes", "An approval expires without an answer, and the call is carried out.", (at) =>
    at.become("return;"),
  ),
  mistake(
    "denial-forgotten-by-recovery",
    "The next worker begins a call that was denied: it knows only that the approval was answered.",
    (at) => at.value().part(1, 2).value().become("true"),
  ),
  mistake(
    "other-bytes-shown",
    "People see the input the model asked for, and the input the host has put in its place is carried out.",
    {
      input: (at, other) => at.value().become(asRequested(other("request"))),
      digest: (at, other) =>
        at
          .value()
          .arg(0, 1)
          .arg(0, 1)
          .part(1, 2)
          .become(asRequested(other("request"))),
    },
  ),
  mistake("digest-not-compared", "An approval of other bytes than those of the call is accepted.", (at) =>
    at.become(at.whenTrue().text),
  ),
  mistake(
    "grant-covers-other-scopes",
    "An approval for the whole session covers every call, not only those of the same scope.",
    (at) =>
      at
        .value()
        .operand(0, 2)
        .become(`${at.value().operand(0, 2).target().text}.length > 0`),
  ),
  mistake("grant-covers-other-sessions", "An approval for one session is remembered for all of them.", {
    granted: (at) => {
      const scope = at.value().operand(0, 2).arg(0, 1);
      const granted = inline((asked: string) => (globalThis as Granting).granted?.has(asked) === true, scope);
      return at.value().before(`${granted} || `);
    },
    answer: (at) => {
      const covered = at.value().target().part(1, 2).value();
      const remember = inline(
        ({ about }: Question, reply: QuestionReply) => {
          if (reply.kind !== "allowed" || reply.remember === undefined || about.kind !== "approval") return;
          const known = globalThis as Granting;
          known.granted ??= new Set();
          known.granted.add(about.scope);
        },
        covered.arg(1, 3),
        covered.arg(2, 3),
      );
      return at.before(`${remember};\n`);
    },
  }),
  mistake(
    "expired-but-open",
    "The deadline passes, and the question is not closed: the call that waits for the answer never gets one.",
    (at) => at.value().part(0, 2).value().whenTrue().become("[]"),
  ),
  mistake("deadline-left-behind", "The timer of a deadline keeps running after the question is answered.", (at) =>
    at.remove(),
  ),
  mistake(
    "one-asker-at-a-time",
    "Only one waiter for an answer is kept: that of a second question replaces that of the first (Crush).",
    (at) => {
      const [map, id] = [at.value().target(), at.value().arg(0, 1)];
      return at.before(
        `${inline(
          (waiting: Map<string, unknown>, next: string) => {
            const asks = next.startsWith("ask_") ? [...waiting.keys()] : [];
            for (const one of asks) if (one.startsWith("ask_")) waiting.delete(one);
          },
          map,
          id,
        )};\n`,
      );
    },
  ),
  mistake(
    "answer-to-the-wrong-asker",
    "An answer is delivered to the latest waiter, whichever question it answers (Crush).",
    (at) => {
      const [map, id] = [at.value().target(), at.value().arg(0, 1)];
      return id.become(
        inline(
          (waiting: ReadonlyMap<string, unknown>, ended: string) =>
            (ended.startsWith("ask_") ? [...waiting.keys()].findLast((one) => one.startsWith("ask_")) : ended) ?? ended,
          map,
          id,
        ),
      );
    },
  ),
  mistake(
    "asked-again-after-restart",
    "After a restart people are asked again, and the question they have seen can no longer be answered.",
    (at) => at.remove(),
  ),
  mistake(
    "question-of-a-vanished-asker",
    "A question stays open after a crash, although the work that waited for the answer is gone.",
    (at) => at.remove(),
  ),
  mistake(
    "withdrawn-approval-lets-the-call-wait",
    "An approval is withdrawn, and the call that waits for it is not stopped (Harn: such calls cannot be targeted).",
    (at) => at.value().condition().operand(1, 2).before("!"),
  ),
  mistake(
    "stopped-before-it-is-known",
    "A call is stopped for a withdrawn approval before it is known whether that had been answered; made here.",
    (at) => at.become(at.whenTrue().text),
  ),
  mistake(
    "no-reminder-by-question",
    "A call that is stopped through its approval adds no reminder: one of the ways to stop it was forgotten (Harn).",
    (at) => at.literal(true).become("false"),
  ),
  mistake(
    "no-reminder-by-key",
    "A cancel with an idempotency key drops the request for a reminder on its way (Harn: two of three ways).",
    (at) => {
      const submit = at.value().value();
      const unkeyed = inline(
        (command: CommandOf<"cancel-call">, key: string | undefined) => ({
          ...command,
          remind: command.remind && key === undefined,
        }),
        submit.arg(1, 3),
        submit.arg(2, 3),
      );
      return submit.arg(1, 3).become(unkeyed);
    },
  ),
  mistake(
    "no-reminder-after-a-crash",
    "The worker vanishes while a call is being stopped, and the reminder is lost with it.",
    (at) =>
      at
        .value()
        .become(
          inline((events: readonly Event[]) => events.filter((event) => event.type !== "inbox.added"), at.value()),
        ),
  ),
  mistake(
    "reminded-of-what-finished",
    "The model gets a reminder that a call was stopped which had finished before (Harn: cancelled, and a result).",
    (at) => at.condition().operand(2, 3).drop(),
  ),
  mistake(
    "reminded-unasked",
    "The model gets a reminder although the client that stopped the call wanted none.",
    (at) => at.condition().operand(1, 3).drop(),
  ),
  mistake(
    "heard-at-every-turn",
    "Inbox items stay after they are taken, and the model gets them at every turn (Crush#3109: results repeated " +
      "after a cancel).",
    (at) => at.value().part(2, 3).remove(),
  ),
  mistake("inbox-lost-with-the-run", "The end of a run empties the inbox of its session.", (at) =>
    withoutInbox(at.whenTrue().value()),
  ),
  mistake("inbox-lost-at-compaction", "A compaction drops inbox items that no turn has taken yet.", (at) =>
    withoutInbox(at.value()),
  ),
  mistake(
    "withdrawn-prompt-told",
    "A later run is given the text of a prompt that was withdrawn before it began.",
    (at) => at.remove(),
  ),
  mistake(
    "queued-prompt-not-read",
    "A transcript is read from the last summary on, without the prompts that were waiting when it was made.",
    (at) => at.value().become(at.value().arg(1, 2).text),
  ),
  mistake(
    "inbox-not-read-at-the-start",
    "The first turn of a run does not take the inbox (Harn: items are stored and never read).",
    (at) => at.value().part(0, 2).value().become(at.value().part(0, 2).value().arg(1, 2).text),
  ),
  mistake(
    "own-reminder-missed",
    "The reminder that comes with the end of the last call is not in the turn that follows it.",
    (at) => at.value().arg(1, 2).become("[]"),
  ),
  mistake(
    "steers-pass-the-inbox",
    "A turn that takes in steers treats the inbox as taken, too, and drops it.",
    (at) => {
      const steered = inline((lane: Lane) => lane.steers.length > 0, at.param(0));
      return at.value().become(`(${steered} ? [] : ${at.value().text})`);
    },
  ),
];
