// A Belay with an external agent that is killed during a prompt. Prints a line when the prompt has begun.
import { externalAgentFixture, said } from "./external-agent-fixture.ts";

const [dir = "", memory = "", mark = ""] = process.argv.slice(2);
const { session } = await externalAgentFixture({ dir, skills: { memory, restores: "load" } });
await session.prompt("echo first").outcome;
const run = session.prompt(`deaf ${mark}`);
const queued = session.prompt("recall");
await queued.accepted;
await said(run, "up");
process.stdout.write("under way\n");
