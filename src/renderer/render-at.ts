import type { Renderer } from "./renderer.ts";

/** Returns a renderer with the given date. Without a date, returns the renderer itself. */
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
