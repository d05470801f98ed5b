import { startLink } from "./faults/rig/link.ts";

export type CuttingProxy = Awaited<ReturnType<typeof startCuttingProxy>>;

/** A TCP proxy in front of a listener, whose connections can be cut. */
export async function startCuttingProxy(target: string) {
  let port = Number(new URL(target).port);
  let connections = 0;
  const link = await startLink(() => {
    connections++;
    return port;
  });
  return {
    url: `http://127.0.0.1:${link.port}`,
    /** The number of connections so far. */
    get connections() {
      return connections;
    },
    /** Resets every connection, and refuses new ones until `mend`. */
    cut: () => link.set("cut"),
    /** Lets connections through again, to another target if one is given. */
    mend(next = target) {
      port = Number(new URL(next).port);
      link.set("open");
    },
    close: link.close,
  };
}
