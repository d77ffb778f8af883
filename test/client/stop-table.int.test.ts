// No stop is lost on its way: every method that stops, on every transport, with a prompt in flight, whatever the
// network does. The rows are read off the types of the control: a method that is added there must be added here.
import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { type BelayClient, connectBelay } from "../../src/client/belay-client.ts";
import type { BelayControl, CoveredSession, ProcessControl, RunControl, SessionControl } from "../../src/control.ts";
import type { CancelReceipt, SessionReceipt } from "../../src/core/cancel.ts";
import { ControlError } from "../../src/core/control-error.ts";
import { systemClock } from "../../src/engine/system-clock.ts";
import { type Belay, openBelay } from "../../src/library/belay.ts";
import { MemoryStore } from "../../src/store/memory/memory-store.ts";
import { Gate } from "../../src/testing/gate.ts";
import { type FaultyTransport, faultyTransport } from "../fixtures/faulty-transport.ts";
import { inMemoryServer } from "../fixtures/in-memory-server.ts";

type Receipt = SessionReceipt | CancelReceipt | readonly CoveredSession[];
type StopsOf<T> = {
  [K in keyof T & string]: T[K] extends (...given: never[]) => Promise<infer R>
    ? [R] extends [Receipt]
      ? K
      : never
    : never;
}[keyof T & string];
type Method =
  | `belay.${StopsOf<BelayControl>}`
  | `session.${StopsOf<SessionControl>}`
  | `run.${StopsOf<RunControl>}`
  | `process.${StopsOf<ProcessControl>}`;

interface InFlight {
  readonly control: BelayControl;
  readonly session: SessionControl;
  readonly run: RunControl;
  readonly key: string;
}

type Prompted = "in a session" | "in a session of its own";
type Row = Partial<Record<Prompted, (one: InFlight) => Promise<unknown>>> | "names what has an id";

const ROWS: Readonly<Record<Method, Row>> = {
  "belay.cancel": { "in a session": ({ control, session }) => control.cancel(session.id) },
  "belay.cancelPrompt": { "in a session of its own": ({ control, key }) => control.cancelPrompt(key) },
  "belay.cancelAll": {
    "in a session": ({ control }) => control.cancelAll(),
    "in a session of its own": ({ control }) => control.cancelAll(),
  },
  "session.cancel": { "in a session": ({ session }) => session.cancel() },
  "session.cancelPrompt": { "in a session": ({ session, key }) => session.cancelPrompt(key) },
  // A call has its ids from the events of its run: nothing can be overtaken.
  "session.cancelCall": "names what has an id",
  "session.close": { "in a session": ({ session }) => session.close() },
  "run.cancel": {
    "in a session": ({ run }) => run.cancel(),
    "in a session of its own": ({ run }) => run.cancel(),
  },
  // A process has its id from the answer to its start: nothing can be overtaken.
  "process.cancel": "names what has an id",
};

const NETWORK = ["in one tick", "delayed", "reordered", "answer lost", "server restarted"] as const;
type Network = (typeof NETWORK)[number];

/** Where the cells of a transport are: in this file, or in tests of its own, by their titles. */
const TRANSPORTS: Readonly<Record<string, readonly Network[] | Readonly<Record<string, readonly string[]>>>> = {
  library: ["in one tick"],
  client: NETWORK,
  "HTTP/1.1, pipelined": {
    "test/client/stop-pipelined.int.test.ts": ["G7: a pipelined stop covers the prompt before it"],
  },
  bridge: {
    "test/bridge/through-server.int.test.ts": [
      "G7: a cancel covers the prompt in the line before it, and not the one in the line after it",
    ],
  },
  "command line": {
    "src/cli/control-commands.int.test.ts": [
      "a live run, by the beginning of its id",
      "it asks nobody and stops every session",
    ],
  },
  "ACP, versions 1 and 2": { "test/acp/stops.test.ts": ["a stop is carried out in either form"] },
};

const cells = Object.entries(ROWS).flatMap(([method, row]) =>
  row === "names what has an id"
    ? []
    : Object.entries(row).flatMap(([prompted, stop]) =>
        Object.entries(TRANSPORTS).flatMap(([transport, networks]) =>
          Array.isArray(networks)
            ? networks.map((network: Network) => ({ method, prompted: prompted as Prompted, stop, transport, network }))
            : [],
        ),
      ),
);

describe("G7: the prompt before it does not run on", () => {
  test.each(cells)(
    "$method, $transport, a prompt $prompted, $network",
    async ({ prompted, stop, transport, network }) => {
      await using house = await opened(transport);
      const { transport: line } = house;
      const session = await house.control.createSession();
      const own = prompted === "in a session of its own";
      const path = own ? "POST /v1/runs" : `POST /v1/sessions/${session.id}/runs`;
      const gate = new Gate();
      if (network === "delayed" || network === "server restarted")
        line?.plan(path, 1, { kind: "hold-request", until: gate });
      if (network === "reordered") line?.plan(path, 1, { kind: "duplicate", answer: "second", delivery: "at-once" });
      if (network === "answer lost") line?.plan(path, 1, { kind: "drop-answer" });
      const before = network === "reordered" && !own ? session.prompt("before") : undefined;
      const key = "k";
      const run = own ? house.control.prompt("work", { key }) : session.prompt("work", { key });
      await stop({ control: house.control, session, run, key });
      if (network === "server restarted") await house.restart();
      gate.open();
      for (const one of before === undefined ? [run] : [before, run]) await ended(one, one === run);
    },
  );
});

/** Cancelled, or refused because its session is closed. */
async function ended(run: RunControl, isAimedAt: boolean): Promise<void> {
  const outcome = isAimedAt ? run.outcome : run.cancel().then(() => run.outcome);
  try {
    expect((await outcome).kind).toBe("cancelled");
  } catch (thrown) {
    if (!(thrown instanceof ControlError)) throw thrown;
    expect(thrown.code).toBe("closed");
  }
}

test("every transport has its cells", () => {
  for (const where of Object.values(TRANSPORTS)) {
    if (Array.isArray(where)) continue;
    for (const [file, titles] of Object.entries(where)) {
      for (const title of titles) expect(readFileSync(file, "utf8")).toContain(title);
    }
  }
});

interface House extends AsyncDisposable {
  readonly control: BelayControl;
  readonly transport: FaultyTransport | undefined;
  restart(): Promise<void>;
}

async function opened(transport: string): Promise<House> {
  const store = Object.assign(new MemoryStore({ clock: systemClock }), { close: async () => {} });
  const open = (): Promise<Belay> =>
    openBelay({
      store,
      graceMs: 50,
      agent: ({ signal }) => new Promise((_, no) => signal.addEventListener("abort", no)),
    });
  let belay = await open();
  let server = inMemoryServer(belay);
  const line = faultyTransport((url, init) => server.fetch(url, init));
  const { url, token } = server;
  const client: BelayClient | undefined =
    transport === "client" ? await connectBelay({ url, token, fetch: line.fetch }) : undefined;
  onTestFinished(async () => void (await belay.close({ mode: "cancel", limitMs: 1_000 })));
  return {
    control: client ?? belay,
    transport: client === undefined ? undefined : line,
    restart: async () => {
      await belay.close();
      belay = await open();
      server = inMemoryServer(belay);
    },
    [Symbol.asyncDispose]: async () => void (await client?.close()),
  };
}
