"""Data-Juicer's video_extract_frames_mapper: a frame of each second."""

import sys
import tempfile

from data_juicer.ops.mapper.video_extract_frames_mapper import VideoExtractFramesMapper

count = 0
with tempfile.TemporaryDirectory() as folder:
    operator = VideoExtractFramesMapper(
        frame_sampling_method="uniform",
        frame_num=1,
        duration=1,
        frame_dir=folder,
        legacy_split_by_text_token=False,
    )
    for video in sys.argv[1:]:
        (frames,) = operator.process_single({"videos": [video]})["video_frames"]
        count += len(frames)
print(count, "frames kept")
