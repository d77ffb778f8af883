// Who is told what the server does: the log, the audit trail, the metrics. What stands here is all it needs of them.

/** One line for each thing worth telling. Never throws. */
export interface ServerLog {
  debug(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  error(msg: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** One control request: who asked for what, and what they were told. */
export interface AuditNote {
  /** Of the request. */
  readonly id: string;
  /** Wall clock, ms. */
  readonly at: number;
  readonly actor: string;
  readonly via: "http" | "socket" | "acp";
  readonly action: string;
  readonly target?: string;
  /** The kind of the receipt, or `refused`. */
  readonly answer: string;
  readonly code?: string;
  readonly note?: string;
  readonly tenant?: string;
}

export interface AuditQuery {
  readonly before?: string;
  readonly limit: number;
  readonly tenant?: string;
  readonly target?: string;
  readonly actor?: string;
}

export interface ServerAudit {
  /** Resolves once it outlives this program. */
  note(record: AuditNote): Promise<void>;
  /** Newest first. */
  read(options: AuditQuery): Promise<{
    readonly records: readonly (Omit<AuditNote, "via"> & { readonly via: string })[];
    readonly next?: string;
  }>;
}

export interface ServerMetrics {
  /** Whether so many files are open that no command can be started. For readiness. */
  readonly isShortOfFiles?: () => boolean;
  /** By the name of the route; `none` where there is none. */
  answered(route: string, status: number): void;
  streams(open: number): void;
  /** Connections that speak ACP. */
  acp(open: number): void;
  /** What Prometheus reads. */
  text(): string | Promise<string>;
}

const quiet = (): void => {};

export const NO_LOG: ServerLog = { debug: quiet, warn: quiet, error: quiet };
