"""NeMo Curator on CPUs: all frames at 48 x 27 by FFmpeg, as its shot detector takes them."""

import os
import sys
import tempfile
from pathlib import Path

import imageio_ffmpeg
from nemo_curator.stages.video.clipping.video_frame_extraction import get_frames_from_ffmpeg

count = 0
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "ffmpeg").symlink_to(imageio_ffmpeg.get_ffmpeg_exe())
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    for video in sys.argv[1:]:
        frames = get_frames_from_ffmpeg(Path(video), width=48, height=27, use_gpu=False)
        if frames is None:
            sys.exit("get_frames_from_ffmpeg returned nothing")
        count += len(frames)
print(count, "frames kept")
