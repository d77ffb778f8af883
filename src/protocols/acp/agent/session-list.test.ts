import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BelayControl, SessionsPage } from "../../../ports/control.ts";
import { type Belay, openBelay } from "../../../sdk/belay.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { type AcpClientInfo, LOCAL_USER } from "./acp-client-info.ts";
import { LIST_PAGE } from "./limits.ts";
import { type ListOptions, type ListPage, listSessions } from "./session-list.ts";

const clock = manualClock(Date.UTC(2026, 0, 1));
const NO_WISH: ListOptions = { cwd: undefined, cursor: undefined };

let belay: Belay;
beforeEach(async () => {
  belay = await openBelay({ agent: () => "done", store: ":memory:", directories: "any", clock });
});
afterEach(() => belay.close());

const listed = (wish: Partial<ListOptions> = {}, guest: AcpClientInfo = LOCAL_USER): Promise<ListPage> =>
  listSessions(belay, guest, "/w", { ...NO_WISH, ...wish });

describe("sessions are listed", () => {
  test("newest first, with their titles or first prompts", async () => {
    const one = await belay.createSession({ title: "a title" });
    const other = await belay.createSession();
    await clock.advance(1_000);
    await other.prompt("first\n  words").outcome;
    await other.prompt("second").outcome;
    const empty = await belay.createSession();
    const { sessions, nextCursor } = await listed();
    expect(sessions.map(({ sessionId, title }) => [sessionId, title])).toEqual([
      [empty.id, null],
      [other.id, "first words"],
      [one.id, "a title"],
    ]);
    expect(sessions[1]?.updatedAt).toBe("2026-01-01T00:00:01.000Z");
    expect(sessions[2]?.updatedAt).toBe("2026-01-01T00:00:00.000Z");
    expect(nextCursor).toBeUndefined();
  });

  test("with one stream for each session without a title, once", async () => {
    await belay.createSession({ title: "a title" });
    const other = await belay.createSession();
    await other.prompt("first words").outcome;
    const opened: string[] = [];
    const control: BelayControl = Object.create(belay, {
      sessions: { value: belay.sessions.bind(belay) },
      session: {
        value: (id: string) => {
          opened.push(id);
          return belay.session(id);
        },
      },
    });
    const titles = async () =>
      (await listSessions(control, LOCAL_USER, "/w", NO_WISH)).sessions.map(({ title }) => title);
    expect([await titles(), await titles()]).toEqual([1, 2].map(() => ["first words", "a title"]));
    expect(opened).toEqual([other.id]);
  });

  test("by their directory, which may be the server's default", async () => {
    const [root, own] = [await belay.createSession({ cwd: "/" }), await belay.createSession()];
    expect((await listed({ cwd: "/" })).sessions.map(({ sessionId }) => sessionId)).toEqual([root.id]);
    expect((await listed({ cwd: "/w" })).sessions.map(({ sessionId }) => sessionId)).toEqual([own.id]);
    expect((await listed({ cwd: "/nowhere" })).sessions).toEqual([]);
  });

  test("unless they were closed", async () => {
    const session = await belay.createSession();
    await session.close();
    expect((await listed()).sessions).toEqual([]);
  });

  test("page by page, each session once", async () => {
    const ids: string[] = [];
    while (ids.length < LIST_PAGE + 3) ids.unshift((await belay.createSession()).id);
    const first = await listed();
    expect(first.sessions).toHaveLength(LIST_PAGE);
    const second = await listed({ cursor: first.nextCursor });
    expect([...first.sessions, ...second.sessions].map(({ sessionId }) => sessionId)).toEqual(ids);
    expect(second.nextCursor).toBeUndefined();
  });

  test("newest first, however many there are", async () => {
    const control = manySessions(10_050);
    const page = await listSessions(control, LOCAL_USER, "/w", NO_WISH);
    expect(page.sessions[0]?.sessionId).toBe("ses_10049");
    expect(page.sessions).toHaveLength(LIST_PAGE);
    const next = await listSessions(control, LOCAL_USER, "/w", { ...NO_WISH, cursor: page.nextCursor });
    expect(next.sessions[0]?.sessionId).toBe(`ses_${10_049 - LIST_PAGE}`);
    const rare = await listSessions(control, LOCAL_USER, "/w", { ...NO_WISH, cwd: "/" });
    expect(rare).toEqual({ sessions: [], nextCursor: "ses_50" });
    const rest = await listSessions(control, LOCAL_USER, "/w", { cwd: "/", cursor: rare.nextCursor });
    expect(rest.sessions.map(({ sessionId }) => sessionId)).toEqual(["ses_0"]);
  });

  test("and an unknown cursor is refused, not taken for the end", async () => {
    await belay.createSession();
    for (const cursor of ["ses_none", "nonsense"])
      await expect(listed({ cursor })).rejects.toMatchObject({ code: -32602 });
  });

  test("G35: for a tenant only its own, with any cursor", async () => {
    const other = await belay.createSession({ tenant: "other" });
    const mine = await belay.createSession({ tenant: "acme" });
    const guest: AcpClientInfo = { name: "ann", tenant: "acme", may: new Set(["read"]) };
    expect((await listed({}, guest)).sessions.map(({ sessionId }) => sessionId)).toEqual([mine.id]);
    await expect(listed({ cursor: other.id }, guest)).rejects.toMatchObject({ code: -32602 });
  });
});

/** Open sessions `ses_0` to `ses_<n-1>`; only the oldest works in the root directory. */
function manySessions(count: number): BelayControl {
  const row = (number: number) =>
    ({
      id: `ses_${number}`,
      head: 1,
      createdAt: 0,
      updatedAt: 0,
      title: "t",
      cwd: number === 0 ? "/" : "/w",
      phase: "open",
    }) as const;
  return {
    sessions: async ({ before, limit = 0 }: SessionsPage) => {
      const from = before === undefined ? count : Number(before.slice(4));
      return Array.from({ length: Math.min(limit, from) }, (_, at) => row(from - 1 - at));
    },
    session: (id: string) => ({ row: async () => row(Number(id.slice(4))), events: async function* () {} }),
  } as unknown as BelayControl;
}
