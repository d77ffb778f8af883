// G28: the same faults of a store file, for streams, a bridge, and the shutdown of the server.
import { describe, expect, test } from "vitest";
import { ROUTE_NAMES, type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { InMemoryHost } from "../fixtures/bridge-host.ts";
import { FAULTS, STREAMS, served } from "./lost-files.ts";
import { idsOf, pathOf } from "./samples.ts";

describe.each(Object.entries(FAULTS))("G28: a store file %s", (_, { lose, takes }) => {
  test(`close() ${takes === "nothing" ? "reports it" : "closes it"}`, async () => {
    const { belay, file, directory } = await served();
    await belay.createSession();
    lose(file, directory);
    const code = await belay.close().then(
      () => "closed",
      (error: { readonly code: string }) => error.code,
    );
    expect(code).toBe(takes === "nothing" ? "store_corrupt" : "closed");
  });

  test("open streams end or stay open, and can be closed", { timeout: 30_000 }, async () => {
    const at = await served();
    const session = await at.belay.createSession();
    const run = session.prompt("wait");
    const { runId } = await run.accepted;
    const child = await session.processes.start("sleep 600");
    const ids = { ...idsOf(undefined), session: session.id, run: runId, process: child.id };
    const names = ROUTE_NAMES.filter((one) => STREAMS.test(routeOf(one).path));
    const open = async (name: RouteName): Promise<readonly [RouteName, Response]> => {
      const headers = { authorization: "Bearer x", accept: "text/event-stream" };
      const request = new Request(`https://belay.test${pathOf(routeOf(name), ids)}`, { headers });
      return [name, await at.mounted.fetch(request)];
    };
    const before = await Promise.all(names.map(open));
    lose(at.file, at.directory);
    const after = await Promise.all(names.map(open));
    expect(before.map(([name, { status }]) => [name, status])).toEqual(names.map((name) => [name, 200]));
    for (const [name, { status }] of after) expect({ name, isFault: status === 500 }).toEqual({ name, isFault: false });
    await child.cancel().catch(() => undefined);
    // They end when the client disconnects.
    for (const [, { body }] of [...before, ...after]) await body?.cancel();
  });

  test("through a bridge new work is refused and a stop is carried out", { timeout: 30_000 }, async () => {
    const at = await served();
    const host = new InMemoryHost({ control: at.belay });
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "wait" } });
    const began = await at.began;
    lose(at.file, at.directory);
    const refused = (await host.ask("session/new")).error?.data?.code;
    expect(refused).toBe({ nothing: "store_corrupt", ends: "store_locked", all: undefined }[takes]);
    expect((await host.ask("ping")).result).toEqual({});
    await host.ask("session/cancel", { sessionId });
    expect(began.aborted).toBe(true);
  });
});
