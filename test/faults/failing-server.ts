// A whole house in one folder: store, processes, audit trail, a server on a real socket and a client of it.
import { mkdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { type BelayClient, connectBelay } from "../../src/client/belay-client.ts";
import { serveBelay } from "../../src/http/serve.ts";
import type { Turn } from "../../src/ports/agent.ts";
import type { SessionControl } from "../../src/ports/control.ts";
import type { Notice } from "../../src/ports/hooks.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { openAuditTrail } from "../../src/telemetry/audit/audit-file.ts";
import type { AuditTrail } from "../../src/telemetry/audit/audit-trail.ts";

export interface FailingServer {
  readonly belay: Belay;
  readonly client: BelayClient;
  readonly audit: AuditTrail;
  readonly notices: Notice[];
  /** What the server says of itself, with its status. */
  readyz(): Promise<{ readonly status: number; readonly says: string }>;
  /** A prompt as anybody sends it; answers the status. */
  post(session: string, text: string): Promise<number>;
  close(): Promise<void>;
}

type Act = (turn: Turn) => Promise<string> | string;

/** The prompt names what its turn does; what it does not name is answered with "done". */
export async function failingServer(
  folder: string,
  acts: Readonly<Record<string, Act>>,
  files: { readonly store?: string } = {},
): Promise<FailingServer> {
  const notices: Notice[] = [];
  const belay = await openBelay({
    store: files.store ?? join(folder, "belay.db"),
    graceMs: 500,
    processes: { workspace: folder, dir: join(folder, "processes") },
    onNotice: (notice) => notices.push(notice),
    agent: (turn) => acts[turn.prompt.text]?.(turn) ?? "done",
  });
  const log = { info: () => {}, warn: () => {} };
  const audit = await openAuditTrail({
    folder: join(folder, "audit"),
    redact: (text) => text,
    clock: systemClock,
    log,
  });
  const tokens = join(folder, "tokens");
  mkdirSync(tokens, { mode: 0o700, recursive: true });
  const serving = await serveBelay(belay, { tokens, audit });
  const token = readFileSync(serving.tokenFile ?? "", "utf8").trim();
  const client = await connectBelay({ url: serving.at, token });
  return {
    ...{ belay, client, audit, notices },
    readyz: async () => {
      const { status, text } = await ask(serving.at, "GET", "/readyz", token);
      return { status, says: (JSON.parse(text) as { readonly status: string }).status };
    },
    post: async (session, text) =>
      (await ask(serving.at, "POST", `/v1/sessions/${session}/runs`, token, JSON.stringify({ prompt: text }))).status,
    close: async () => {
      await client.close();
      await serving.close();
      await belay.close({ mode: "cancel", limitMs: 3_000 });
      await audit.close();
    },
  };
}

function ask(
  url: string,
  method: string,
  path: string,
  ...[token, body]: readonly [string, string?]
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sent = request(new URL(path, url), { method, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      answer.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** The pid of the session's first process, once it has started. */
export async function startedPid(session: SessionControl): Promise<number> {
  for await (const event of session.events()) if (event.type === "process.started") return event.pid;
  throw new Error("No process was started.");
}

/** Whether a process exists. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
