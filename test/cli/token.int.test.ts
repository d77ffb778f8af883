// `belay token` and the audit trail of `belay logs`, as a user types them.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { jsonLines, Shell } from "../fixtures/shell.ts";

const SECRET = /^belay_[A-Za-z0-9_-]{43}\n$/;

describe("belay token", { timeout: 60_000 }, () => {
  test("a new secret is printed once, alone on stdout, and is in no file", async () => {
    const shell = new Shell();
    const { code, out, err } = await shell.belay(
      "token",
      "add",
      "--scope",
      "read",
      "--scope",
      "prompt",
      "--expires",
      "30d",
      "ci",
    );
    expect(code).toBe(0);
    expect(out).toMatch(SECRET);
    expect(err).toContain("ci: read, prompt; the whole server");
    const kept = readFileSync(join(shell.home, "tokens.json"), "utf8");
    expect(kept).not.toContain(out.trim());
    expect(statSync(join(shell.home, "tokens.json")).mode & 0o777).toBe(0o600);
    const list = await shell.belay("token", "list");
    expect(list.out).toMatch(/ci +read,prompt/);
    expect(list.out).not.toContain("belay_");
  });

  test("adds a token of a tenant, rotates and revokes it, as JSON", async () => {
    const shell = new Shell();
    const added = await shell.belay("token", "add", "watch", "--scope", "read", "--tenant", "acme", "--json");
    expect(jsonLines(added.out)).toMatchObject([
      { token: { name: "watch", tenant: "acme" }, secret: expect.any(String) },
    ]);
    const rotated = await shell.belay("token", "rotate", "watch", "--grace", "1h", "--json");
    expect(jsonLines(rotated.out)[0]?.secret).not.toBe(jsonLines(added.out)[0]?.secret);
    expect(jsonLines((await shell.belay("token", "revoke", "watch", "--json")).out)).toEqual([{ revoked: "watch" }]);
    expect(jsonLines((await shell.belay("token", "list", "--json")).out)).toEqual([{ tokens: [] }]);
  });

  test.each([
    [["add", "x", "--scope", "raed"], EXIT_CODE.invalid, "Did you mean read?"],
    [["add", "x"], EXIT_CODE.invalid, "--scope"],
    [["add", "x", "--scope", "read", "--expires", "soon"], EXIT_CODE.invalid, "30d"],
    [["revoke", "nobody"], EXIT_CODE.not_found, "nobody"],
    [["rotate", "nobody"], EXIT_CODE.not_found, "nobody"],
    [["show"], EXIT_CODE.not_found, "belay serve"],
  ])("%j is refused with advice", async (args, expected, advice) => {
    const { code, out, err } = await new Shell().belay("token", ...args);
    expect({ code, out }).toEqual({ code: expected, out: "" });
    expect(err).toContain(advice);
  });

  test("the own token is shown on a terminal, and elsewhere only with --plain", async () => {
    const shell = new Shell();
    await shell.serve();
    const refused = await shell.belay("token", "show");
    expect({ code: refused.code, out: refused.out }).toEqual({ code: EXIT_CODE.invalid, out: "" });
    const plain = await shell.belay("token", "show", "--plain");
    expect(plain.out).toMatch(SECRET);
    const terminal = shell.onTerminal("token", "show");
    expect(await terminal.sees(/(belay_[A-Za-z0-9_-]{43})/)).toBe(plain.out.trim());
    expect(await terminal.ended).toBe(0);
  });
});

describe("belay logs", { timeout: 60_000 }, () => {
  test("without an id prints the audit trail, newest last; that of a new home is empty", async () => {
    const shell = new Shell();
    expect((await shell.belay("logs")).out).toBe("The audit trail is empty.\n");
    expect((await shell.belay("logs", "--json")).out).toBe("");
    await shell.serve();
    for (const text of ["say one", "say two", "say three"]) await shell.belay("run", "--key", text, text);
    const records = jsonLines((await shell.belay("logs", "--json", "--limit", "2")).out);
    expect(records).toHaveLength(2);
    expect(records.map(({ action, actor, via, answer }) => [action, actor, via, answer])).toEqual([
      ["prompt", "local", "socket", "accepted"],
      ["prompt", "local", "socket", "accepted"],
    ]);
    expect(Number(records[0]?.at)).toBeLessThanOrEqual(Number(records[1]?.at));
  });

  test("of a session or a run prints its events, even from a store that no server has open", async () => {
    const shell = new Shell();
    const server = await shell.serve();
    const run = await shell.belay("run", "--json", "say hello");
    const { sessionId = "", runId = "" } = jsonLines(run.out).at(-1) ?? {};
    const lines = await shell.belay("logs", String(sessionId));
    expect(lines.out).toMatch(/1 .* session\.created[\s\S]*run\.accepted +run_\S+ say hello[\s\S]*run\.settled/);
    server.signal("SIGTERM");
    expect(await server.ended).toBe(0);
    const offline = await shell.belay("logs", "--store", join(shell.home, "belay.db"), String(runId), "--json");
    expect(jsonLines(offline.out).map(({ type }) => type)).toEqual([
      ...["run.accepted", "run.started", "turn.requested", "turn.settled", "run.settled"],
    ]);
  });

  test.each([
    [["run_nothing"], EXIT_CODE.not_found],
    [["proc_nothing.1"], EXIT_CODE.not_found],
    [["--url", "http://127.0.0.1:1"], EXIT_CODE.invalid],
    [["--limit", "0"], EXIT_CODE.invalid],
  ])("%j is refused", async (args, expected) => {
    const shell = new Shell();
    await shell.serve();
    const { code, out } = await shell.belay("logs", ...args);
    expect({ code, out }).toEqual({ code: expected, out: "" });
  });
});
