// The JavaScript runtime. Belay is written for Node.js; Bun and Deno can run it and differ in what they support.
import { ControlError } from "../core/errors.ts";

const NODE_MIN = [22, 13] as const;

export type RuntimeName = "node" | "bun" | "deno";

export function runtimeName(versions: NodeJS.ProcessVersions = process.versions): RuntimeName {
  if (versions.bun !== undefined) return "bun";
  return versions.deno === undefined ? "node" : "deno";
}

/** Throws if this Node.js is too old. Missing features would fail later without a clear error. */
export function requireRuntime({ node }: Pick<NodeJS.ProcessVersions, "node"> = process.versions): void {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  throw new ControlError("unavailable", `Belay needs Node.js ${NODE_MIN.join(".")} or newer, and this is ${node}.`, {
    hint: "Install a newer one from https://nodejs.org and try again.",
  });
}
