// The laws of the protocol that hold for every connection, checked on its transcript. Returns the violations.
//
//   answered-once      each request of the client has one answer, and nothing else is answered
//   told-before        no update of a run follows its end
//   one-after-another  no update of a run precedes the end of the previous run
//   calls-end          every call gets exactly one final status, before the end of its run
//   cancel-is-no-error a prompt that was cancelled has a result (second version: unless it had not begun)
//   no-echo            a client does not receive its own prompt (first version)
//   questions-end      questions about a run are answered or withdrawn before its end
//   closed-is-closed   a closed session sends no updates
//   states             idle and running alternate, and every run that began ends in idle once (second version)
import {
  answeredRun,
  belayOf,
  type Fields,
  fieldsOf,
  type Message,
  type Said,
  textOf,
  type Update,
  updateOf,
  type Version,
} from "./transcript.ts";

export interface LawOptions {
  /** `open`: some requests may still be unanswered. */
  readonly end: "open" | "finished";
}

export function brokenLaws(said: readonly Said[], version: Version, { end }: LawOptions): readonly string[] {
  const reader = new Reader(said, version);
  for (const [at, one] of said.entries()) reader.read(one, at);
  if (end === "finished") reader.finish();
  return reader.broken;
}

interface Prompt {
  readonly session: string;
  readonly sentAt: number;
  readonly answeredAt: number;
  /** Whether its answer is a result. In version 2 that means that it has begun. */
  readonly hasResult: boolean;
  readonly run: string;
}

interface Call {
  readonly run: string;
  phase: "open" | "ended";
}

const OPENS = new Set(["session/new", "session/load", "session/resume"]);
const CLOSES = new Set(["session/close", "session/delete"]);
const FINAL = new Set(["completed", "failed", "cancelled"]);
const NEVER = Number.POSITIVE_INFINITY;

class Reader {
  readonly broken: string[] = [];
  readonly #version: Version;
  readonly #prompts: readonly Prompt[];
  readonly #asked = new Map<string, { readonly message: Message; answers: number }>();
  readonly #calls = new Map<string, Call>();
  readonly #questions = new Map<string, string>();
  readonly #replaying = new Map<string, string>();
  readonly #closed = new Set<string>();
  readonly #state = new Map<string, string>();
  readonly #idle = new Map<string, number>();
  /** Those of `#idle` that no message of their own ended: a replay has told of an idle session. */
  readonly #idleInReplay = new Set<string>();
  readonly #told = new Set<string>();
  /** The run of the last update, by session. */
  readonly #latest = new Map<string, string>();
  /** The sessions that are being closed, by request, unless they were opened again after it. */
  readonly #closing = new Map<string, string>();

  constructor(said: readonly Said[], version: Version) {
    this.#version = version;
    this.#prompts = promptsOf(said);
  }

  read(one: Said, at: number): void {
    const { by, message } = one;
    const told = updateOf(one);
    if (told !== undefined) this.#update(told.sessionId, told.update, at);
    else if (by === "client" && message.method !== undefined) this.#request(message);
    else if (by === "agent" && message.method === undefined) this.#answer(message);
    else if (by === "agent") this.#ask(message);
    else this.#questions.delete(key(message.id));
  }

  finish(): void {
    for (const [id, { message, answers }] of this.#asked) {
      if (answers === 0) this.#break("answered-once", `${message.method} ${id} has no answer`);
    }
    for (const [call, { phase }] of this.#calls) {
      if (phase === "open") this.#break("calls-end", `${call} has no last status`);
    }
    if (this.#version === 1) return;
    for (const { run, hasResult } of this.#prompts) {
      if (hasResult && !this.#idle.has(run)) this.#break("states", `${run} never became idle`);
    }
  }

  #break(law: string, what: string): void {
    this.broken.push(`${law}: ${what}`);
  }

  #request({ id, method = "", params, ...rest }: Message): void {
    const session = textOf(params?.sessionId);
    if (OPENS.has(method)) {
      this.#closed.delete(session);
      for (const [closing, which] of this.#closing) if (which === session) this.#closing.delete(closing);
    }
    if (CLOSES.has(method)) this.#closing.set(key(id), session);
    if (id === undefined) return;
    this.#asked.set(key(id), {
      message: { id, method, ...(params === undefined ? {} : { params }), ...rest },
      answers: 0,
    });
    if (method === "session/load" || method === "session/resume") this.#replaying.set(key(id), session);
  }

  #answer(message: Message): void {
    // An error without an id answers an unreadable request.
    if (message.id === null) return;
    const id = key(message.id);
    const asked = this.#asked.get(id);
    if (asked === undefined) {
      this.#break("answered-once", `${id} answers no request`);
      return;
    }
    asked.answers += 1;
    if (asked.answers > 1) this.#break("answered-once", `${asked.message.method} ${id} has ${asked.answers} answers`);
    this.#replaying.delete(id);
    const { method = "", params } = asked.message;
    if (this.#closing.delete(id) && message.error === undefined) this.#closed.add(textOf(params?.sessionId));
    if (method === "session/prompt") this.#promptAnswered(message);
  }

  #promptAnswered(message: Message): void {
    const { error } = message;
    const run = answeredRun(message);
    if (error !== undefined && this.#version === 1 && (error.code === -32800 || /abort|cancel/i.test(error.message))) {
      this.#break("cancel-is-no-error", JSON.stringify(error));
    }
    if (error?.code === -32603 && run === "") this.#break("cancel-is-no-error", `of no run: ${JSON.stringify(error)}`);
    if (this.#version === 1 && run !== "") this.#ended(run);
    if (this.#version === 2 && error !== undefined && this.#told.has(run)) {
      this.#break("cancel-is-no-error", `${run} had begun, and its prompt was refused`);
    }
  }

  /** The end of a run was reported: by the answer, or by the idle update. */
  #ended(run: string): void {
    for (const [id, call] of this.#calls) {
      if (call.run === run && call.phase === "open") this.#break("calls-end", `${id} is open at the end of ${run}`);
    }
    for (const [id, about] of this.#questions) {
      if (about === run) this.#break("questions-end", `request ${id} is open at the end of ${run}`);
    }
  }

  #ask({ id, method, params }: Message): void {
    if (method === "$/cancel_request") {
      this.#questions.delete(key(params?.requestId));
      return;
    }
    const call = textOf(fieldsOf(params?.toolCall ?? fieldsOf(params?.subject).toolCall).toolCallId);
    if (id !== undefined) this.#questions.set(key(id), this.#calls.get(call)?.run ?? "");
  }

  #update(session: string, update: Update, at: number): void {
    if (this.#closed.has(session)) this.#break("closed-is-closed", `${update.sessionUpdate} in ${session}`);
    const isReplay = [...this.#replaying.values()].includes(session);
    const run = this.#runOf(update);
    if (run !== "" && !isReplay) this.#inOrder(session, run, at);
    // The state that a replay ends with may be older than the run that follows it in the same replay.
    if (isReplay && this.#idleInReplay.delete(run)) this.#idle.delete(run);
    if (run !== "") {
      this.#told.add(run);
      this.#latest.set(session, run);
    }
    if (update.sessionUpdate === "user_message_chunk" && !isReplay && this.#owner(run) !== undefined) {
      this.#break("no-echo", `${run} was told to who had sent it`);
    }
    if (update.sessionUpdate.startsWith("tool_call")) this.#call(update, run, isReplay ? "again" : "live");
    if (update.sessionUpdate === "state_update") this.#stated(session, update, isReplay, at);
  }

  #runOf(update: Update): string {
    return textOf(belayOf(update).runId) || (this.#calls.get(textOf(update.toolCallId))?.run ?? "");
  }

  #owner(run: string): Prompt | undefined {
    return run === "" ? undefined : this.#prompts.find((one) => one.run === run);
  }

  #inOrder(session: string, run: string, at: number): void {
    const own = this.#owner(run);
    if (this.#endOf(run, own) < at) this.#break("told-before", `${run} has an update after its end`);
    if (own === undefined || own.session !== session) return;
    for (const before of this.#prompts) {
      if (before.session !== session || before.run === "" || before.sentAt >= own.sentAt) continue;
      if (this.#isOpen(before, at)) this.#break("one-after-another", `${run} has an update before ${before.run} ends`);
    }
  }

  #endOf(run: string, own: Prompt | undefined): number {
    if (this.#version === 2) return this.#idle.get(run) ?? NEVER;
    return own?.answeredAt ?? NEVER;
  }

  #isOpen({ run, answeredAt, hasResult }: Prompt, at: number): boolean {
    return answeredAt > at || (this.#version === 2 && hasResult && !this.#idle.has(run));
  }

  #call(update: Update, run: string, how: "live" | "again"): void {
    const id = textOf(update.toolCallId);
    const known = this.#calls.get(id);
    const isNew = known === undefined || (how === "again" && known.phase === "ended");
    const isFirst = update.sessionUpdate === "tool_call" || (this.#version === 2 && isNew);
    if (isFirst) this.#calls.set(id, { run, phase: "open" });
    const call = this.#calls.get(id);
    if (call === undefined) {
      this.#break("calls-end", `${id} was never begun`);
      return;
    }
    if (call.phase === "ended") this.#break("calls-end", `${id} has an update after its final status`);
    if (FINAL.has(textOf(update.status))) call.phase = "ended";
  }

  #stated(session: string, update: Update, isReplay: boolean, at: number): void {
    const state = textOf(update.state);
    const before = this.#state.get(session) ?? "idle";
    this.#state.set(session, state);
    if (isReplay) {
      this.#replayed(session, state, at);
      return;
    }
    if (state === "running" && before === "running") this.#break("states", `${session} runs twice`);
    if (state !== "idle") return;
    if (before === "idle") this.#break("states", `${session} is idle twice`);
    const run = textOf(belayOf(update).runId);
    if (this.#idle.has(run)) this.#break("states", `${run} ends twice`);
    this.#idle.set(run, at);
    this.#ended(run);
  }

  /** Runs that had ended by then are part of the replayed history, which contains no idle updates. */
  #replayed(session: string, state: string, at: number): void {
    const begun = this.#prompts.filter((one) => one.session === session && one.hasResult && one.answeredAt < at);
    const over = state === "idle" ? begun : begun.filter(({ run }) => run !== this.#latest.get(session));
    for (const { run } of over) {
      if (this.#idle.has(run)) continue;
      this.#idle.set(run, at);
      this.#idleInReplay.add(run);
    }
  }
}

const key = (id: unknown): string => JSON.stringify(id);

/** The prompts of a connection with their runs. */
function promptsOf(said: readonly Said[]): readonly Prompt[] {
  const answers = new Map<string, { readonly at: number; readonly message: Message }>();
  said.forEach(({ by, message }, at) => {
    if (by === "agent" && message.method === undefined && !answers.has(key(message.id))) {
      answers.set(key(message.id), { at, message });
    }
  });
  return said.flatMap(({ by, message }, sentAt) => {
    if (by !== "client" || message.method !== "session/prompt") return [];
    const answer = answers.get(key(message.id));
    const params: Fields = message.params ?? {};
    return [
      {
        session: textOf(params.sessionId),
        hasResult: answer?.message.result != null,
        sentAt,
        answeredAt: answer?.at ?? NEVER,
        run: answer === undefined ? "" : answeredRun(answer.message),
      },
    ];
  });
}
