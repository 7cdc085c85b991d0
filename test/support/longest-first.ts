import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take longest, ten seconds and more: work or waiting, and a clean checkout does not know of it. */
const longest = [
  "test/simulation/simulation.test.ts",
  "src/queue/queue.test.ts",
  "test/families.test.ts",
  "test/command-line/demo.test.ts",
  "test/viewer/page.test.ts",
  "src/tokenizer/codec-agreement.test.ts",
  "test/package/package.test.ts",
  "test/rollout.test.ts",
  "src/worlds/sandbox/sandbox.test.ts",
  "test/command-line/first-mistakes.test.ts",
  "test/agent-strategies.test.ts",
  "test/command-line/recordings.test.ts",
  "test/queue/handed-out.test.ts",
  "test/command-line/own-environment.test.ts",
];

/** Begins with the longest files, so that no worker is alone with one of them in the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/${name}`));
      return at < 0 ? longest.length : at;
    };
    return (await super.sort(files)).toSorted((left, right) => rank(left) - rank(right));
  }
}
