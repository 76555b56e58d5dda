"""Storage drivers."""

from __future__ import annotations

from shared.fleet.manifests.arm import Section, Switch


class StorageProfile(Section):
    """The drivers for disks, files and blobs, and the controller for snapshots."""

    disk_csi_driver: Switch | None = None
    file_csi_driver: Switch | None = None
    blob_csi_driver: Switch | None = None
    snapshot_controller: Switch | None = None
