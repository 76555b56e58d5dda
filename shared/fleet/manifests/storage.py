"""Storage drivers."""

from __future__ import annotations

from shared.fleet.manifests.arm_types import Section, Switch


class StorageProfile(Section):
    """The drivers for disks, files and blobs, and the controller for snapshots."""

    disk_csi_driver: Switch | None = None
    """Managed disks as volumes."""
    file_csi_driver: Switch | None = None
    """Azure Files as volumes."""
    blob_csi_driver: Switch | None = None
    """Blob storage as volumes."""
    snapshot_controller: Switch | None = None
    """Snapshots of volumes."""
