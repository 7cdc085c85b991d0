import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that take longest, twenty seconds and more on two cores: work or waiting. A clean checkout does not know of
 * it.
 */
const longest = [
  "test/families.test.ts",
  "test/package/package.test.ts",
  "test/command-line/demo.test.ts",
  "test/interop/llama-cpp.test.ts",
  "test/viewer/page.test.ts",
  "test/frozen/frozen-bytes.test.ts",
  "src/queue/queue.test.ts",
  "test/integrations/python-package.test.ts",
  "test/queue/local-workers.test.ts",
  "test/queue/handed-out.test.ts",
  "test/simulation/simulation.test.ts",
  "src/worlds/sandbox/sandbox.test.ts",
  "src/tokenizer/codec-agreement.test.ts",
  "test/columns/kill-columns.test.ts",
  "test/gateway/hostile-clients.test.ts",
  "test/python/python-guide.test.ts",
  "test/rollout.test.ts",
  "src/verify/verify-run.test.ts",
  "test/service/kill-several-rows.test.ts",
  "test/parser/conformance.test.ts",
  "src/run/start-run.test.ts",
  "test/service/serve.test.ts",
  "test/interop/columns.test.ts",
  "test/viewer/hand-on.test.ts",
  "src/tokenizer/byte-pair/text-encoder.test.ts",
  "test/engine/conformance.test.ts",
  "src/queue/hand-out/packed-run.test.ts",
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
