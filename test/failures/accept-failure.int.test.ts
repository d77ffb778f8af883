// G20: the system cannot hand over a connection: no file, no memory. That one is lost, and the server is not.
import { afterEach, expect, test } from "vitest";
import { NodeServer } from "../../src/http/transport/node-server.ts";
import { systemClock } from "../../src/system/system-clock.ts";

const opened: NodeServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close(0)));
});

test("a connection that could not be accepted does not end the server, and is logged", {
  meta: { id: "http/failed-accept-keeps-server" },
}, async () => {
  const told: unknown[] = [];
  const node = new NodeServer({
    handle: async () => ({ status: 200, headers: {}, body: "fine" }),
    clock: systemClock,
    via: "tcp",
    onTrouble: (thrown) => told.push(thrown),
  });
  opened.push(node);
  await new Promise<void>((resolve) => node.server.listen(0, "127.0.0.1", resolve));
  // As Node tells it when accept() fails for another reason than too many files, or for that one twice.
  const failure = Object.assign(new Error("accept ENOMEM"), { code: "ENOMEM", syscall: "accept" });
  node.server.emit("error", failure);
  expect(told).toEqual([failure]);
  const address = node.server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("fine");
});

test("a port that cannot be listened on still rejects listen()", async () => {
  const told: unknown[] = [];
  const make = (): NodeServer => {
    const handle = async () => ({ status: 200, headers: {}, body: "fine" });
    return new NodeServer({ handle, clock: systemClock, via: "tcp", onTrouble: (thrown) => told.push(thrown) });
  };
  const [first, second] = [make(), make()];
  opened.push(first);
  await new Promise<void>((resolve) => first.server.listen(0, "127.0.0.1", resolve));
  const address = first.server.address();
  const refused = new Promise((resolve) => second.server.once("error", resolve));
  second.server.listen(typeof address === "object" ? address?.port : 0, "127.0.0.1");
  expect(await refused).toMatchObject({ code: "EADDRINUSE" });
  expect(told).toEqual([]);
});
