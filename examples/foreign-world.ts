import { createOpenEnv } from "turnwright/worlds";

/** The world of an OpenEnv server, where what the agent says is an action too. */
export async function openForeignWorld(url: string) {
  return await createOpenEnv({ url, say: (text) => ({ type: "say", content: text }) });
}
