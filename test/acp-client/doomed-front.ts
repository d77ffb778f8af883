// A Belay over a foreign agent, that will be killed in the middle of a prompt. Says when the prompt is under way.
import { externalAgentFixture, said } from "./external-agent-fixture.ts";

const [dir = "", memory = "", mark = ""] = process.argv.slice(2);
const { session } = await externalAgentFixture({ dir, skills: { memory, restores: "load" } });
await session.prompt("echo first").outcome;
const run = session.prompt(`deaf ${mark}`);
const queued = session.prompt("recall");
await queued.accepted;
await said(run, "up");
process.stdout.write("under way\n");
