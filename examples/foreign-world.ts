import { createOpenEnv } from "turnwright/worlds";

/** The world of an OpenEnv server whose actions include the agent's messages. */
export async function openForeignWorld(url: string) {
  return await createOpenEnv({ url, say: (text) => ({ type: "say", content: text }) });
}
