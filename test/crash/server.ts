// A real server, to be killed: Belay on a file, behind real sockets. Says on its output when it is ready, and ends in
// order when it is asked to. Its one argument is what it is to be, as JSON.
import { appendFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import { listen, type SocketPlace, type TcpPlace } from "../../src/http/transport/listener.ts";
import type { Mechanism } from "../../src/ports/spawner.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { scriptAgent } from "./script-agent.ts";

export interface ServerWish {
  readonly store: string;
  readonly effects: string;
  /** What an operator would be told of and nobody should have to be. */
  readonly notices: string;
  readonly workspace: string;
  readonly place: TcpPlace | SocketPlace;
  readonly token: string;
  readonly mark: string;
  readonly mechanism?: Mechanism;
}

/** Long enough for a tree to be killed, short enough for many lives. */
const GRACE_MS = 250;

// The edge: what the harness has sent.
const wish = JSON.parse(process.argv[2] ?? "{}") as ServerWish;
const clock = systemClock;
const belay = await openBelay({
  store: wish.store,
  agent: scriptAgent(wish),
  graceMs: GRACE_MS,
  processes: {
    workspace: wish.workspace,
    graceMs: GRACE_MS,
    ...(wish.mechanism === undefined ? {} : { mechanism: wish.mechanism }),
  },
  onNotice: (notice) => {
    // On a machine that is short of processor time, results come late and the event loop may stand for a second.
    if (notice.type === "late" || notice.type === "blocked") return;
    const text = notice.type === "bug" ? { ...notice, error: String(notice.error) } : notice;
    appendFileSync(wish.notices, `${JSON.stringify(text)}\n`);
  },
});
const all = { name: "crash", scopes: new Set(TOKEN_SCOPES), tenant: undefined };
const tokens = { verify: (secret: string) => (secret === wish.token ? all : undefined) };
// How fast a token may change things is not what this is about.
const guard = new Guard({ tokens, clock, mutationsPerSecond: 10_000, mutationsBurst: 10_000 });
const handler = makeHandler({ control: belay, guard, clock, version: "0.0.0" });
const listener = await listen(handler.handle, { place: wish.place, clock });
const { address } = listener;
if (address.kind === "tcp") guard.serves(address.served);

process.once("SIGTERM", () => void end());
// Whoever started it is gone, however that came about: it is not left behind.
process.stdin.on("end", () => process.kill(process.pid, "SIGKILL")).resume();
process.stdout.write(`${JSON.stringify({ port: address.kind === "tcp" ? address.port : 0 })}\n`);
flushCompileCache();

async function end(): Promise<void> {
  await handler.drain();
  await listener.close({ limitMs: 0 });
  await belay.close();
  process.exit(0);
}
