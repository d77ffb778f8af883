// G28: a store file that is removed alone or with its directory, replaced, renamed or linked, or loses its lock, under
// a server. For every route of the table: the request is answered, no change is acknowledged that is not in the file,
// and no internal error is reported.
import { describe, expect, test } from "vitest";
import { isMutation } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, routeOf } from "../../src/http/routes/routes.ts";
import { ask, FAULTS, STREAMS, served } from "./lost-files.ts";
import { idsOf } from "./samples.ts";

/** Routes that start work: refused as long as the file cannot be trusted. */
const BEGINNINGS: ReadonlySet<string> = new Set(["createSession", "beginRun", "promptSession"]);

/** Stops and answers for unknown objects: there is nothing to write. */
const WRITES_NOTHING: ReadonlySet<string> = new Set([
  "cancelBegun",
  "cancelCall",
  "cancelProcess",
  "cancelQuestion",
  "cancelSessionCall",
  "answerQuestion",
]);

describe.each(Object.entries(FAULTS))("G28: a store file %s", (_, { lose, takes }) => {
  test("every route is answered, and no change that would be lost is acknowledged", { timeout: 60_000 }, async () => {
    const at = await served();
    const session = await at.belay.createSession();
    const run = session.prompt("wait");
    const { runId } = await run.accepted;
    lose(at.file, at.directory);
    const ids = { ...idsOf(undefined), session: session.id, run: runId };
    const names = ROUTE_NAMES.filter((one) => !STREAMS.test(routeOf(one).path));
    // Routes that start work come first: a session that another route has closed would refuse them.
    for (const name of names.toSorted((a, b) => Number(BEGINNINGS.has(b)) - Number(BEGINNINGS.has(a)))) {
      const status = await ask(at, name, ids);
      if (BEGINNINGS.has(name) && takes !== "all") expect({ name, status }).toEqual({ name, status: refusal(takes) });
      const isAcknowledged = isMutation(routeOf(name)) && status < 300 && takes === "nothing";
      if (isAcknowledged) expect(WRITES_NOTHING).toContain(name);
    }
    expect((await at.belay.status()).trouble).toBe(
      { nothing: "store_corrupt", ends: "store_locked", all: undefined }[takes],
    );
  });

  test("a stop is carried out even if it cannot be recorded", { timeout: 30_000 }, async () => {
    const at = await served();
    const session = await at.belay.createSession();
    const run = session.prompt("wait");
    await run.accepted;
    const began = await at.began;
    lose(at.file, at.directory);
    const receipt = run.cancel({ waitMs: 0 }).then(
      ({ kind }) => kind as string,
      (error: { readonly code: string }) => error.code,
    );
    expect(await receipt).toBe(takes === "nothing" ? "store_corrupt" : "stopping");
    expect(began.aborted).toBe(true);
  });
});

const refusal = (takes: "nothing" | "ends"): number => (takes === "nothing" ? 500 : 503);
