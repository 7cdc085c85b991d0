import { defineEnvironment } from "turnwright";
import { createMcpTools, type McpServer } from "turnwright/worlds";

/** Sums that an MCP server has to do; `server` has a tool `add`, and others that are left out. */
export async function createSums(server: McpServer) {
  return defineEnvironment({
    name: "sums",
    tasks: [2, 40].map((a) => ({ instruction: `What is ${a} and 3?`, sum: a + 3 })),
    policy: "Never reckon yourself.",
    tools: await createMcpTools({
      ...server,
      names: (name) => (name === "add" ? name : undefined),
    }),
    score: (_, { sum }, { answer, calls }) =>
      calls.some(({ name }) => name === "add") && answer.includes(String(sum)),
  });
}
