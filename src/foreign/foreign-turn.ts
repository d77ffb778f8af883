// One prompt of a foreign agent, as a turn of Belay hears it: its words, its calls, its questions, and its end.
//
// Invariants
// 1. Once the turn is to stop, the agent is told in that tick, and every question of its is answered at once.
// 2. A stop that it does not follow is asked for again, and then its process is ended; all within the turn's grace.
// 3. When `carryOut` has resolved or rejected, no call of the prompt is going on, unless it still waits for leave.
import type { ContentBlock, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { Turn } from "../ports.ts";
import { CANCEL_CALL } from "./abilities.ts";
import { AgentFailed } from "./agent-failed.ts";
import { isObject } from "./kept-json.ts";
import { ASK_AGAIN_SHARE, CALLS_MAX, END_SHARE } from "./limits.ts";
import { type Link, type Listener, wordsOf } from "./link.ts";
import { Mirror, type MirrorParts } from "./mirror.ts";
import { askLeave, readOptions } from "./permission.ts";
import { readNews, type Update } from "./update.ts";

export class ForeignTurn implements Listener {
  readonly sessionId: string;
  /** Characters it has said, to itself and to people. */
  said = 0;
  readonly #turn: Turn;
  readonly #link: Link;
  readonly #mirrors = new Map<string, Mirror>();
  readonly #stopping = Promise.withResolvers<void>();
  readonly #again = new AbortController();
  #takeBack: (() => void)[] = [];

  constructor(turn: Turn, link: Link, sessionId: string) {
    this.#turn = turn;
    this.#link = link;
    this.sessionId = sessionId;
  }

  /** Sends one prompt, and resolves with how the agent says it ended. */
  async carryOut(prompt: readonly ContentBlock[]): Promise<string> {
    const { signal } = this.#turn;
    const stop = (): void => this.#stop();
    signal.throwIfAborted();
    this.#link.listener = this;
    try {
      const { sessionId } = this;
      const asked = this.#link.request<unknown>("session/prompt", { sessionId, prompt }, this.#again.signal);
      signal.addEventListener("abort", stop, { once: true });
      const answer = await asked;
      const stopReason = isObject(answer) ? answer.stopReason : undefined;
      if (typeof stopReason !== "string") throw new AgentFailed("agent_failed", `${this.#link.name} ${NO_ANSWER}`);
      await this.#settleCalls(`${this.#link.name} ended its turn and did not say what became of it.`);
      return stopReason;
    } catch (error) {
      throw await this.#failed(error);
    } finally {
      signal.removeEventListener("abort", stop);
      for (const takeBack of this.#takeBack) takeBack();
      this.#link.listener = undefined;
    }
  }

  told(update: Update): void {
    switch (update.kind) {
      case "text":
        this.said += update.text.length;
        this.#turn.emit(update.text);
        return;
      case "thought":
        this.said += update.text.length;
        this.#turn.emit(update.text, "reasoning");
        return;
      case "call":
        this.#mirror(update.news.id)?.told(update.news);
        return;
      case "other":
        return;
    }
  }

  async permission(params: unknown, taken: AbortSignal): Promise<RequestPermissionResponse> {
    const news = readNews(isObject(params) ? params.toolCall : undefined);
    const mirror = news === undefined ? undefined : this.#mirror(news.id);
    if (mirror === undefined || news === undefined || this.#turn.signal.aborted)
      return { outcome: { outcome: "cancelled" } };
    // Leave is asked for before it begins, whatever status it is said to have.
    mirror.told({ ...news, status: undefined });
    const back = new Promise<void>((resolve) => taken.addEventListener("abort", () => resolve(), { once: true }));
    return askLeave(mirror, readOptions(params), Promise.race([this.#stopping.promise, back]), this.#link.leave);
  }

  /** Undefined: there are too many. */
  #mirror(id: string): Mirror | undefined {
    const known = this.#mirrors.get(id);
    if (known !== undefined || this.#mirrors.size >= CALLS_MAX) return known;
    const made = new Mirror(id, this.#parts());
    this.#mirrors.set(id, made);
    return made;
  }

  #parts(): MirrorParts {
    const { sessionId } = this;
    const cancel = (toolCallId: string): void =>
      void this.#link.request(CANCEL_CALL, { sessionId, toolCallId }).catch(ignore);
    const forbidden = (title: string): void => {
      // It was not asked, so it could not be kept from it. It can be kept from the next thing.
      this.#turn.stop(`${this.#link.name} did what a rule of the host forbids, unasked: ${title}`).catch(ignore);
    };
    return { turn: this.#turn, cancel: this.#link.abilities.cancelsCalls ? cancel : undefined, forbidden };
  }

  #stop(): void {
    const { clock, graceMs } = this.#turn;
    const { sessionId } = this;
    this.#link.notify("session/cancel", { sessionId });
    this.#stopping.resolve();
    this.#takeBack = [
      clock.after(graceMs * ASK_AGAIN_SHARE, () => this.#again.abort()),
      clock.after(graceMs * END_SHARE, () => void this.#link.stop({ kind: "policy", note: NOT_STOPPED })),
    ];
  }

  async #failed(error: unknown): Promise<unknown> {
    const { signal } = this.#turn;
    const { name } = this.#link;
    const words = error instanceof AgentFailed ? error.message : wordsOf(error);
    if (words === undefined || !this.#link.isOpen) {
      const result = await this.#link.stop({ kind: "policy", note: "Its connection is broken." });
      await this.#settleCalls(`${name} ended before it said what became of this. Whether it was done is not known.`);
      return signal.aborted
        ? signal.reason
        : await this.#link.failed("agent_ended", "ended in the middle of the work", result);
    }
    await this.#settleCalls(`${name} failed and did not say what became of this.`);
    if (signal.aborted) return signal.reason;
    if (error instanceof AgentFailed) return error;
    return new AgentFailed("agent_failed", `${name} failed: ${words}`, { cause: error });
  }

  /** What is still open ends now. One that waits for leave ends with the turn: it has not begun. */
  async #settleCalls(why: string): Promise<void> {
    const open = [...this.#mirrors.values()];
    for (const mirror of open) mirror.end({ kind: "unknown", why });
    await Promise.all(open.flatMap((mirror) => (mirror.phase === "called" ? [mirror.result] : [])));
  }
}

const NO_ANSWER = "answered the prompt, and did not say how it ended.";

const NOT_STOPPED = "It did not stop when it was asked to.";

const ignore = (): void => {};
