// Test helpers for users' agents and tools. They need no particular test runner. Like the main entry point, this
// exports each name explicitly.
export { type Finding, type VerifyOptions, verify, verifyAtRest } from "../core/read/verify.ts";
export { type Fault, type FaultyStore, faultyStore, type StoreTrouble, type StoreVerb } from "./faulty-store.ts";
export { Gate } from "./gate.ts";
export { type Given, given, givenNoSession } from "./given.ts";
export { type ManualClock, manualClock, type PendingTimer, settled } from "./manual-clock.ts";
export { type ScriptedAgent, type ScriptedTurn, type Step, scriptedAgent } from "./scripted-agent.ts";
export type { ScriptedCall } from "./scripted-call.ts";
export type { DeathVerified, ExitBehavior, ScriptedChild } from "./scripted-child.ts";
export {
  type ModelStep,
  type ScriptedModel,
  type ScriptedRequest,
  type ScriptedUsage,
  scriptedModel,
} from "./scripted-model.ts";
export {
  type ChildScript,
  type ScriptedSpawner,
  type ScriptedSpawnerOptions,
  scriptedSpawner,
} from "./scripted-spawner.ts";
export { sequentialIds } from "./sequential-ids.ts";
