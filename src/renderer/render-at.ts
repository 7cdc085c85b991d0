import type { Renderer } from "./renderer.ts";

/** A renderer for conversations of one day; as it is where none is given. */
export function renderAt(renderer: Renderer, now: Date | undefined): Renderer {
  if (now === undefined) return renderer;
  return {
    ...renderer,
    now,
    prompt: async (conversation) => await renderer.prompt({ now, ...conversation }),
    delta: async (turn) => await renderer.delta({ now, ...turn }),
    ...(renderer.rerender && {
      rerender: async (turn) => await renderer.rerender!({ now, ...turn }),
    }),
  };
}
