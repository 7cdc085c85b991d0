import { defaultLimits } from "../../src/episode/limits.ts";
import type { StartRunOptions } from "../../src/run/start-run-options.ts";
import { createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import type { Scenario } from "./scenario.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { SimulatedWorld } from "./simulated-world.ts";
import { tallyAgent, tallyEnvironment, tallyUser, type Surroundings } from "./tally-world.ts";

/** The base of the sampling seeds. */
export const samplingSeed = 7;

/** The setup of one process; each has an engine, users and tools with faults of their own. */
export function simulatedSetup(
  world: SimulatedWorld,
  scenario: Scenario,
  { process, troubles }: { readonly process: SimulatedProcess; readonly troubles: number },
): StartRunOptions["setup"] {
  const { draw, random } = world;
  const { clock } = process;
  const { agent, isUndisturbed, taskCount } = scenario;
  const around: Surroundings = {
    random,
    clock,
    troubles,
    draw: isUndisturbed ? () => 0 : draw,
  };
  const jump = (): number => (!isUndisturbed && random.chance(0.01) ? 3_600_000 : 0);
  return {
    environment: tallyEnvironment(taskCount, around),
    user: tallyUser(around),
    engine: world.engine(troubles, clock),
    renderer: createCharacterRenderer(),
    agent: tallyAgent(agent, random),
    sampling: { seed: samplingSeed },
    limits: { ...defaultLimits, maxTurns: 6 },
    // Clocks of machines jump.
    now: () => 1_000_000 + clock.now() + jump(),
    clock,
  };
}
