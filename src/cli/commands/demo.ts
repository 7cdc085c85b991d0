import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { demoScope } from "../demo/scope.ts";

interface DemoFlags {
  readonly out?: string;
  readonly model?: string;
  readonly tasks: string;
  readonly seed: string;
  readonly standIn?: true;
  readonly env?: string;
  readonly data?: string;
  readonly mistakes?: string;
}

/** `turnwright demo`: shows a complete run on this machine in less than a minute. */
export function defineDemo(command: Command): void {
  command
    .description(
      "Plays 32 tasks of the built-in shop 4 times each with a small policy that is sampled in this " +
        "process, verifies the samples, and shows what came of it.\n\n" +
        "With --stand-in no model is sampled: a stand-in server speaks SGLang's protocol and plays a " +
        "script that solves the tasks, with deliberate mistakes. So τ-bench can be tried, too.",
    )
    .option("--out <dir>", "the run's folder")
    .option(
      "--model <dir>",
      "model folder: weights for the engine, with --stand-in a ChatML-style tokenizer " +
        "(default: the shipped policy; Qwen3's tokenizer, from the repository)",
    )
    .option(
      "--tasks <n>",
      `number of tasks, ${demoScope.taskCount} at the most`,
      `${demoScope.taskCount}`,
    )
    .option("--seed <n>", "another seed draws other conversations", "0")
    .option("--stand-in", "play a script that speaks SGLang's protocol instead of a policy")
    .option(
      "--env <name>",
      "with --stand-in: environment (default: tau-retail with a τ-bench bundle, else storefront)",
    )
    .option("--data <dir>", "with --stand-in: a τ-bench bundle folder")
    .option(
      "--mistakes <rate>",
      "with --stand-in: share of episodes with a deliberate mistake (default: 0.4)",
    )
    .action(demo);
}

async function demo({ standIn, env, data, mistakes, model, ...flags }: DemoFlags): Promise<void> {
  const seed = Number(flags.seed);
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new UsageError(`Cannot use --seed ${flags.seed}: expected a whole number, 0 or more`);
  }
  const taskCount = Number(flags.tasks);
  if (!(Number.isInteger(taskCount) && taskCount >= 1 && taskCount <= demoScope.taskCount)) {
    const { taskCount: most } = demoScope;
    throw new UsageError(
      `Cannot use --tasks ${flags.tasks}: expected a number of tasks from 1 to ${most}`,
    );
  }
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, "-");
  const out = flags.out ?? `runs/demo-${stamp}`;
  if (standIn === true) {
    const mistakeRate = Number(mistakes ?? "0.4");
    if (!(mistakeRate >= 0 && mistakeRate <= 1)) {
      throw new UsageError(`Cannot use --mistakes ${mistakes}: expected a number from 0 to 1`);
    }
    const { playStandInDemo } = await import("../demo/stand-in-demo.ts");
    await playStandInDemo({ env, data, model, out, seed, taskCount, mistakeRate });
    return;
  }
  const others = { env, data, mistakes };
  for (const [name, value] of Object.entries(others)) {
    if (value !== undefined) throw new UsageError(`Cannot use --${name} without --stand-in`);
  }
  const { demoModelDir, playPolicyDemo } = await import("../demo/policy-demo.ts");
  await playPolicyDemo({ model: model ?? demoModelDir(), out, seed, taskCount });
}
