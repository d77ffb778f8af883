// A short story over the public library. Each step asks and does not insist: what an earlier fault has prevented is
// left out, and everything that was asked for is held.
import type { FaultFixture, StageOptions } from "./fault-fixture.ts";

export interface Story {
  readonly name: string;
  readonly options: StageOptions;
  readonly play: (stage: FaultFixture) => Promise<void>;
}

export const story = (name: string, play: Story["play"], options: StageOptions = {}): Story => ({
  name,
  options,
  play,
});

/** One in a session that exists: it is made first. */
export const inSession = (name: string, play: Story["play"], options: StageOptions = {}): Story =>
  story(
    name,
    async (stage) => {
      await stage.create();
      await play(stage);
    },
    options,
  );
