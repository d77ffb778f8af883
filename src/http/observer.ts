// The interfaces of log, audit trail and metrics that the server uses.

/** A structured logger. Its methods must not throw. */
export interface ServerLog {
  debug(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(msg: string, fields?: Readonly<Record<string, unknown>>): void;
  error(msg: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** The audit record of one control request: its actor, its action and its result. */
export interface AuditNote {
  /** The id of the request. */
  readonly id: string;
  /** Milliseconds of the wall clock. */
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
  /** Records a request. Resolves once the record survives a crash of this process. */
  note(record: AuditNote): Promise<void>;
  /** Returns a page of records, newest first. */
  read(options: AuditQuery): Promise<{
    readonly records: readonly (Omit<AuditNote, "via"> & { readonly via: string })[];
    readonly next?: string;
  }>;
}

export interface ServerMetrics {
  /** Whether too many files are open to start a command. Readiness depends on it. */
  readonly isShortOfFiles?: () => boolean;
  /** Counts a response by the name of its route; `none` for requests without a route. */
  answered(route: string, status: number): void;
  streams(open: number): void;
  /** Sets the number of open ACP connections. */
  acp(open: number): void;
  /** The text that Prometheus scrapes. */
  text(): string | Promise<string>;
}

const quiet = (): void => {};

export const NO_LOG: ServerLog = { debug: quiet, warn: quiet, error: quiet };
