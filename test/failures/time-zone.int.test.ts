// K12: a machine with another time zone and another language. What programs read is the same everywhere.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonLines, Shell } from "../fixtures/shell.ts";

/** Half an hour off every other zone, and a language in which a lower-case I has no dot. */
const ELSEWHERE = { TZ: "Asia/Kolkata", LANG: "tr_TR.UTF-8", LC_ALL: "tr_TR.UTF-8" };

/** Every value in it that could be a time. */
function* times(value: unknown, name = ""): Generator<readonly [string, unknown]> {
  if (Array.isArray(value)) for (const one of value) yield* times(one, name);
  else if (typeof value === "object" && value !== null) {
    for (const [key, one] of Object.entries(value)) yield* times(one, key);
  } else if (/(^at|At|time|since)$/.test(name) || (typeof value === "string" && /\d\d:\d\d/.test(value))) {
    yield [name, value];
  }
}

/** Positions in a log are called like times, and are small. */
const isTime = (value: unknown): boolean => typeof value === "string" || Number(value) > 1e11;

test("K12: times are milliseconds or ISO in UTC, wherever the server stands", {
  timeout: 60_000,
  meta: { id: "cli/times-are-utc" },
}, async () => {
  const shell = new Shell(ELSEWHERE);
  const before = Date.now();
  const server = await shell.serve("--log-json");
  const run = await shell.belay("run", "--json", "say I");
  expect(run.code).toBe(0);
  const looks = await Promise.all([
    ...["sessions", "runs", "ps"].map((word) => shell.belay(word, "--json")),
    shell.belay("logs", "--json"),
  ]);
  server.signal("SIGTERM");
  expect(await server.ended).toBe(0);
  const audit = readdirSync(join(shell.home, "audit")).map((name) =>
    readFileSync(join(shell.home, "audit", name), "utf8"),
  );
  const said = [run.out, ...looks.map(({ out }) => out), ...audit, server.err].flatMap(jsonLines);
  const found = said.flatMap((line) => [...times(line)]).filter(([, value]) => isTime(value));
  expect(found.length).toBeGreaterThan(8);
  for (const [name, value] of found) {
    const at = typeof value === "number" ? value : Date.parse(String(value));
    expect([name, value, at >= before - 1 && at <= Date.now()]).toEqual([name, value, true]);
    if (typeof value === "string") expect([name, value]).toEqual([name, new Date(at).toISOString()]);
  }
});
