// What of a configuration Belay itself is opened with.
import type { BelayOptions } from "../sdk/belay-options.ts";
import type { SettledConfig } from "./config.ts";

/** For `openBelay()`, together with the agent and the store. */
export function openOptions({
  workspace,
  directories,
  retention,
  limits = {},
  processes = {},
}: SettledConfig): Pick<
  BelayOptions,
  "directories" | "retention" | "graceMs" | "liveRunsMax" | "runLimitMs" | "processes"
> {
  const { graceMs, liveRunsMax, runLimitMs } = limits;
  return {
    ...(directories === undefined ? {} : { directories }),
    ...(retention === undefined ? {} : { retention }),
    ...(graceMs === undefined ? {} : { graceMs }),
    ...(liveRunsMax === undefined ? {} : { liveRunsMax }),
    ...(runLimitMs === undefined ? {} : { runLimitMs }),
    processes: { workspace, ...processes, ...(graceMs === undefined ? {} : { graceMs }) },
  };
}
