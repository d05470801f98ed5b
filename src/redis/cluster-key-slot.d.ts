/** The package has no types. */
declare module "cluster-key-slot" {
  /** The slot of a cluster that has a key. */
  export default function slotOf(key: string): number;
}
