// The memos of all sessions, oldest first, stored as text.

import { MEMO_MS, MEMOS_PER_ACTOR_MAX } from "../../core/limits.ts";
import { type SessionId, tenantOf } from "../../core/model/ids.ts";
import { type Memo, memoName } from "../../core/model/memo.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Batch } from "../../ports/store.ts";

interface Kept {
  readonly session: SessionId;
  readonly actor: string | undefined;
  readonly at: number;
  readonly data: string;
}

export class Memos {
  /** Memos age by a monotonic clock. */
  readonly #clock: Pick<Clock, "elapsed">;
  readonly #kept = new Map<string, Kept>();
  readonly #names = new Map<SessionId, Set<string>>();

  constructor(clock: Pick<Clock, "elapsed">) {
    this.#clock = clock;
  }

  of(session: SessionId): readonly Memo[] {
    return [...(this.#names.get(session) ?? [])].flatMap((name) => this.#find(session, name));
  }

  /** The memos with these names. */
  named(session: SessionId, names: readonly string[]): readonly Memo[] {
    const expired = this.#clock.elapsed() - MEMO_MS;
    const isLive = (name: string): boolean => (this.#kept.get(idOf(session, name))?.at ?? expired) > expired;
    return names.filter(isLive).flatMap((name) => this.#find(session, name));
  }

  /** The users who would exceed their limit of prompt memos if this batch were added. */
  crowded({ session, memos = [] }: Batch): readonly string[] {
    const added = new Map<string, number>();
    for (const change of memos) {
      if (change.type !== "keep" || change.memo.kind !== "prompt") continue;
      if (this.#kept.has(idOf(session, memoName(change.memo)))) continue;
      added.set(change.memo.actor, (added.get(change.memo.actor) ?? 0) + 1);
    }
    if (added.size === 0) return [];
    const expired = this.#clock.elapsed() - MEMO_MS;
    const isLive = (one: Kept): boolean => one.at > expired;
    // Users of two tenants may have the same name.
    const isOf = (one: Kept, actor: string): boolean =>
      one.actor === actor && tenantOf(one.session) === tenantOf(session);
    const count = (actor: string): number =>
      [...this.#kept.values()].filter((one) => isOf(one, actor) && isLive(one)).length;
    return [...added].flatMap(([actor, more]) => (count(actor) + more > MEMOS_PER_ACTOR_MAX ? [actor] : []));
  }

  write({ session, memos = [] }: Batch): void {
    const at = this.#clock.elapsed();
    for (const change of memos) {
      const name = change.type === "keep" ? memoName(change.memo) : change.name;
      this.#forget(session, name);
      if (change.type === "drop") continue;
      const { memo } = change;
      const actor = memo.kind === "prompt" ? memo.actor : undefined;
      this.#kept.set(idOf(session, name), { session, actor, at, data: JSON.stringify(memo) });
      this.#names.set(session, (this.#names.get(session) ?? new Set()).add(name));
    }
    if (memos.length > 0) this.#expire(at - MEMO_MS);
  }

  /** Removes all memos of a deleted session: a new session with the same id is another session. */
  forgetAll(session: SessionId): void {
    for (const name of [...(this.#names.get(session) ?? [])]) this.#forget(session, name);
  }

  #expire(before: number): void {
    for (const [id, { session, at }] of this.#kept) {
      if (at > before) return;
      this.#forget(session, id.slice(session.length + 1));
    }
  }

  #find(session: SessionId, name: string): readonly Memo[] {
    const kept = this.#kept.get(idOf(session, name));
    return kept === undefined ? [] : [JSON.parse(kept.data) as Memo];
  }

  #forget(session: SessionId, name: string): void {
    this.#kept.delete(idOf(session, name));
    const names = this.#names.get(session);
    names?.delete(name);
    if (names?.size === 0) this.#names.delete(session);
  }
}

const idOf = (session: SessionId, name: string): string => `${session} ${name}`;
