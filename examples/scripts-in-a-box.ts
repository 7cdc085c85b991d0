import { defineEnvironment } from "turnwright";
import { readSandboxFile, type Sandboxes } from "turnwright/worlds";
import { z } from "zod";

/** Creates tasks that ask for a file. Each episode has its own sandbox to write it in. */
export function createFileTasks(boxes: Sandboxes) {
  return defineEnvironment({
    name: "files",
    tasks: [3, 7].map((count) => ({
      instruction: `Write the numbers from 1 to ${count} to numbers.txt, one a line.`,
      wanted: Array.from({ length: count }, (_, index) => `${index + 1}\n`).join(""),
    })),
    policy: "You have a shell. Say when the work is done.",
    tools: {
      shell: {
        description: "Run a shell command.",
        parameters: z.object({ command: z.string() }),
        async execute({ command }, _, context) {
          const box = await boxes.of(context);
          const { signal } = context;
          return await box.run(["sh", "-c", command], { signal, timeoutMs: 20_000 });
        },
      },
    },
    async score(_, { wanted }, context) {
      const box = await boxes.of(context);
      const { signal } = context;
      return (await readSandboxFile(box, { file: "numbers.txt", signal })) === wanted;
    },
  });
}
