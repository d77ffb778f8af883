// The tests that every transport passes, in either version of the protocol.

import type { Transport } from "./acp-fixture.ts";
import { callTests } from "./call-tests.ts";
import { cancelTests } from "./cancel-tests.ts";
import { historyTests } from "./history-tests.ts";
import { promptTests } from "./prompt-tests.ts";
import { SessionFixture } from "./session-fixture.ts";
import type { Version } from "./transcript.ts";

export function everyTest(transport: Transport, version: Version): void {
  const fixture = new SessionFixture(transport, version);
  promptTests(fixture);
  cancelTests(fixture);
  callTests(fixture);
  historyTests(fixture);
}
